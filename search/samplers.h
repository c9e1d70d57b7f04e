// The samplers, one function each; make_sampler (search.h) picks among them. All are FoldingSampler
// (fold.h): they see each entry of the history once and share what is tried.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "api/study.h"
#include "base/result.h"
#include "search/search.h"
#include "search/space.h"

namespace fettle::search {

// Independent draws from the prior; without repeats in a finite space.
std::unique_ptr<Sampler> make_random(Space space, std::int64_t seed);

// Limits that keep one question within seconds and a point within a double.

// Every point of the space once, by number or in a seeded random order; a continuum is visited at
// `points` values that include both ends.
std::unique_ptr<Sampler> make_grid(const Space& space, std::int64_t seed, std::int64_t points,
                                   bool shuffle);

// Point i of an Owen-scrambled Sobol sequence for trial i. Error: more parameters than the sequence
// has dimensions.
Result<std::unique_ptr<Sampler>> make_sobol(Space space, std::int64_t seed);

// Tree-structured Parzen estimator (tpe.cpp).
struct TpeSettings {
  std::int64_t startup_trials = 10;  // Sobol points before the model is used
  std::int64_t candidates = 24;      // drawn from the model of the good points, for each group
};
std::unique_ptr<Sampler> make_tpe(Space space, std::int64_t seed, TpeSettings settings,
                                  std::vector<api::Objective> objectives);

}  // namespace fettle::search
