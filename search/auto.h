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

// Whether a Gaussian process is worth its cost: not with so many parameters, conditions or trials
// that it would be slow and TPE as good.
bool is_worth_gp(const Problem& problem, const Space& space);

Choice choose_algorithm(const Problem& problem, const Space& space);

}  // namespace fettle::search
