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

// "even": 1 everywhere. "free": a product of powers of the parameters, which have nothing to do
// with the loss. "rising": one where a place near `best`, where the loss is least, is among the
// dearest, as with networks that are the better the larger they are. The dearest place costs 10 to
// 100 times the cheapest one, choices included.
CostLaw make_cost_law(const std::string& kind, std::uint64_t number, const Task& task,
                      const Place& best);

}  // namespace fettle::search::families
