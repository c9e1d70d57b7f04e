// Cost laws: the cost of a trial of a task, to compare searches that take cost into account
// (compare.cpp).
//
// Cost law i of a kind is a function of (kind, i) alone. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/search/families/tasks.h"

namespace fettle::search::families {

using CostLaw = std::function<double(const Place&)>;

// "even": 1 everywhere. "free": powers of one or two of the parameters, independent of the loss.
// "rising": the same, with the least loss on the expensive side, as for networks that improve with
// their size. The most expensive place costs about 100 times the cheapest one.
CostLaw make_cost_law(const std::string& kind, std::uint64_t number, const Task& task,
                      const Place& best);

}  // namespace fettle::search::families
