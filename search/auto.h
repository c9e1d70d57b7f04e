// What the algorithm `auto` stands for: a choice by space, objectives, budget and parallelism, with
// the reason in words. Pure; usable from any thread.
#pragma once

#include <string>

#include "search/search.h"
#include "search/space.h"

namespace fettle::search {

struct Choice {
  std::string algorithm;  // a name that make_sampler knows
  std::string reason;     // completes "..., because "
};

Choice choose_algorithm(const Problem& problem, const Space& space);

}  // namespace fettle::search
