// Factories of the samplers; make_sampler (search.h) picks among them. All are IncrementalSampler
// (incremental_sampler.h): they read each entry of the history once and keep the set of tried
// points.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "base/result.h"
#include "search/cost_ledger.h"
#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search {

namespace gp {
class FitMemo;
}  // namespace gp

// Independent draws from the prior; without repeats in a finite space.
std::unique_ptr<Sampler> make_random(Space space, std::int64_t seed);

// Every point of the space once, by number or in a seeded random order; a continuum is replaced by
// `points` values that include both ends.
std::unique_ptr<Sampler> make_grid(const Space& space, std::int64_t seed, std::int64_t points,
                                   bool shuffle);

// Trial i takes point i of an Owen-scrambled Sobol sequence. Error: more parameters than the
// sequence has dimensions.
Result<std::unique_ptr<Sampler>> make_sobol(Space space, std::int64_t seed);

// Tree-structured Parzen estimator (tpe.cpp).
struct TpeSettings {
  std::int64_t startup_trials = 10;  // Sobol points before the model is used
  std::int64_t candidates = 24;      // per group, drawn from the good density
};
std::unique_ptr<Sampler> make_tpe(Space space, std::int64_t seed, TpeSettings settings,
                                  std::vector<api::Objective> objectives);

// Bayesian optimisation with Gaussian processes (gp/gp_sampler.cpp). Up to kMostEhviObjectives
// objectives have one process each; more are compared by fronts. `memo`: fits that samplers over
// the same space share; may be null.
struct GpSettings {
  std::optional<std::int64_t> startup_trials{};  // before the model is used; nullopt: by the space
  std::int64_t candidates = 1000;           // points at which the acquisition is evaluated first
  std::optional<CostBudget> cost{};         // nullopt: costs do not count
  bool tpe_prior = false;                   // whether tpe's density ratio counts, too
  std::int64_t revision = kNewestRevision;  // of the search (search.h)
  std::shared_ptr<gp::FitMemo> memo{};
};
std::unique_ptr<Sampler> make_gp(Space space, std::int64_t seed, const GpSettings& settings,
                                 std::vector<api::Objective> objectives);
std::shared_ptr<gp::FitMemo> make_fit_memo();

// Evolution strategy with covariance matrix adaptation (cma_es_sampler.cpp). `population`: trials
// per generation; nullopt = by the number of parameters. Error: too many numeric parameters, since
// the time of a step grows with the third power of their number.
inline constexpr std::size_t kMaxCmaesParameters = 1000;
Result<std::unique_ptr<Sampler>> make_cmaes(Space space, std::int64_t seed,
                                            std::optional<std::int64_t> population,
                                            std::vector<api::Objective> objectives);

// Genetic algorithm for several objectives (nsga2.cpp).
inline constexpr std::int64_t kNsga2Population = 20;
std::unique_ptr<Sampler> make_nsga2(Space space, std::int64_t seed, std::int64_t population,
                                    std::vector<api::Objective> objectives);

// Initial members of a population (population.h). Errors: an invalid quantile or interval; errors
// of make_sobol.
Result<std::unique_ptr<Sampler>> make_population(const Problem& problem, Space space);

// Always suggests the parameters of a schedule's first leg. Errors: no legs; parameters outside the
// space.
Result<std::unique_ptr<Sampler>> make_schedule(const Problem& problem, const Space& space);

}  // namespace fettle::search
