// Cost laws: what a trial of a task costs, for comparing searches that count it (compare.cpp).
//
// Cost law i of a kind is a function of (kind, i) alone. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/search/families/tasks.h"

namespace fettle::search::families {

using CostLaw = std::function<double(const Place&)>;

// "even": 1 everywhere. "free": powers of one or two of the parameters, which have nothing to do
// with the loss. "rising": the same, and a place where the loss is least is on the expensive side,
// as with networks that are the better the larger they are. The most expensive place costs about
// 100 times the cheapest one.
CostLaw make_cost_law(const std::string& kind, std::uint64_t number, const Task& task,
                      const Place& best);

}  // namespace fettle::search::families
