// make_sampler: the sampler of each algorithm.
#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "search/auto.h"
#include "search/incremental_sampler.h"
#include "search/maths/ehvi.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_model.h"
#include "search/rungs/rung_table.h"
#include "search/samplers/samplers.h"
#include "search/search.h"
#include "search/warm_start.h"

namespace fettle::search {
namespace {

using api::AlgorithmKind;

constexpr std::int64_t kGridPoints = 10;  // along a Double without a step, unless `points` says

// A sampler under another description.
class Described final : public Sampler {
 public:
  Described(std::unique_ptr<Sampler> sampler, std::string description)
      : sampler_(std::move(sampler)), description_(std::move(description)) {}
  Suggestion suggest(const History& history, std::int64_t n) override {
    return sampler_->suggest(history, n);
  }
  std::optional<Explanation> explain(const History& history, const Json& point) override {
    return sampler_->explain(history, point);
  }
  std::string description() const override { return description_; }

 private:
  std::unique_ptr<Sampler> sampler_;
  std::string description_;
};

std::unique_ptr<Sampler> auto_chosen(std::unique_ptr<Sampler> sampler, const std::string& reason) {
  std::string description = "auto: " + sampler->description() + ", because " + reason;
  return std::make_unique<Described>(std::move(sampler), std::move(description));
}

// Returns the budget of costs; nullopt: costs do not count.
std::optional<CostBudget> cost_budget(const Problem& problem) {
  if (!problem.algorithm.cost_aware) return std::nullopt;
  return CostBudget{problem.max_trials, problem.max_cost, problem.resource.max};
}

Status check_cost(const Problem& problem) {
  if (problem.max_cost && !(*problem.max_cost > 0)) {
    return invalid("all trials together may cost a number above 0; found " +
                   Json(*problem.max_cost).dump());
  }
  if (!problem.algorithm.cost_aware || api::traits(problem.algorithm.name).counts_cost)
    return success();
  return invalid(
      "algorithm " + name_of(problem.algorithm.name) +
      " cannot count what trials cost; gp and ehvi can, and auto where it takes one of them");
}

Status check_model(const std::string& name, std::int64_t startup_trials, std::int64_t candidates) {
  if (startup_trials < 0) {
    return invalid(name + " needs 0 or more startup trials; found " +
                   std::to_string(startup_trials));
  }
  if (candidates < 1 || candidates > api::kMaxCandidates) {
    return invalid(name + " needs 1 to " + std::to_string(api::kMaxCandidates) +
                   " candidates; found " + std::to_string(candidates));
  }
  return success();
}

Result<TpeSettings> tpe_settings(const api::Algorithm& algorithm) {
  TpeSettings out;
  out.startup_trials = algorithm.startup_trials.value_or(out.startup_trials);
  out.candidates = algorithm.candidates.value_or(out.candidates);
  FETTLE_TRY(check_model("tpe", out.startup_trials, out.candidates));
  return out;
}

Result<GpSettings> gp_settings(const Problem& problem) {
  const api::Algorithm& algorithm = problem.algorithm;
  GpSettings out;
  out.cost = cost_budget(problem);
  out.revision = problem.revision;
  out.startup_trials = algorithm.startup_trials;
  out.candidates = algorithm.candidates.value_or(out.candidates);
  // Unset startup trials, which the space decides, are never invalid.
  FETTLE_TRY(check_model(name_of(algorithm.name), out.startup_trials.value_or(0), out.candidates));
  return out;
}

Status check_objectives(const Problem& problem) {
  if (problem.objectives.size() <= kMostEhviObjectives) return success();
  return invalid("ehvi takes up to " + std::to_string(kMostEhviObjectives) + " objectives; found " +
                 std::to_string(problem.objectives.size()) + "; nsga2 and tpe take any number");
}

Result<std::unique_ptr<Sampler>> grid(const Space& space, const api::Algorithm& algorithm) {
  const std::int64_t points = algorithm.points.value_or(kGridPoints);
  if (points < api::kMinGridPoints || points > api::kMaxGridPoints) {
    return invalid("grid needs " + std::to_string(api::kMinGridPoints) + " to " +
                   std::to_string(api::kMaxGridPoints) + " points along a parameter; found " +
                   std::to_string(points));
  }
  return make_grid(space, algorithm.seed, points, algorithm.shuffle);
}

// Makes bohb's model of the places at rungs: the model that `auto` takes without rungs. TPE, the
// paper's model, needs several times the trials. `memo`: fits of earlier models.
Result<std::unique_ptr<Sampler>> model_of_places(const Problem& problem,
                                                 const std::shared_ptr<gp::FitMemo>& memo) {
  FETTLE_ASSIGN(Space space, Space::make(problem.parameters));
  FETTLE_ASSIGN(const TpeSettings tpe, tpe_settings(problem.algorithm));
  FETTLE_ASSIGN(GpSettings gp, gp_settings(problem));
  gp.memo = memo;
  const std::int64_t seed = problem.algorithm.seed;
  return is_worth_gp(problem, space) ? make_gp(std::move(space), seed, gp, problem.objectives)
                                     : make_tpe(std::move(space), seed, tpe, problem.objectives);
}

Result<std::unique_ptr<Sampler>> bohb(const Problem& problem) {
  const auto memo = make_fit_memo();
  const auto factory = [memo](const Problem& places) { return model_of_places(places, memo); };
  return make_rung_model(problem, factory);
}

Status check_population(const api::Algorithm& algorithm) {
  // An unset size is never invalid: the sampler chooses it.
  const std::int64_t size = algorithm.population_size.value_or(api::kMinPopulation);
  if (size >= api::kMinPopulation && size <= api::kMaxPopulation) return success();
  return invalid(name_of(algorithm.name) + " needs a population of " +
                 std::to_string(api::kMinPopulation) + " to " +
                 std::to_string(api::kMaxPopulation) + "; found " + std::to_string(size));
}

Result<std::unique_ptr<Sampler>> make_named(const Problem& problem);

// Makes the sampler that `auto` stands for: the Study's settled choice, or a new one.
Result<std::unique_ptr<Sampler>> choose(const Problem& problem, const Space& space) {
  Choice choice = problem.chosen ? Choice{*problem.chosen, problem.chosen_because}
                                 : choose_algorithm(problem, space);
  Problem chosen = problem;
  chosen.algorithm.name = choice.algorithm;
  chosen.algorithm.shuffle = true;  // of a grid: its first trials already cover the whole space
  if (problem.algorithm.cost_aware && !api::traits(choice.algorithm).counts_cost) {
    chosen.algorithm.cost_aware = false;
    choice.reason += "; what trials cost does not count there";
  }
  // A clause for people (search.h): the decision of `auto` about steps.
  if (!problem.fidelity.empty()) choice.reason += "; " + problem.fidelity;
  FETTLE_ASSIGN(std::unique_ptr<Sampler> sampler, make_named(chosen));
  return auto_chosen(std::move(sampler), choice.reason);
}

Result<std::unique_ptr<Sampler>> tpe(const Problem& problem, Space space) {
  FETTLE_ASSIGN(const TpeSettings settings, tpe_settings(problem.algorithm));
  return make_tpe(std::move(space), problem.algorithm.seed, settings, problem.objectives);
}

Result<std::unique_ptr<Sampler>> gp(const Problem& problem, Space space) {
  FETTLE_ASSIGN(const GpSettings settings, gp_settings(problem));
  return make_gp(std::move(space), problem.algorithm.seed, settings, problem.objectives);
}

Result<std::unique_ptr<Sampler>> ehvi(const Problem& problem, Space space) {
  FETTLE_TRY(check_objectives(problem));
  return gp(problem, std::move(space));
}

// Makes random points for trials that pause at rungs (promotion.h).
std::unique_ptr<Sampler> hyperband(const Problem& problem, Space space) {
  return std::make_unique<Described>(
      make_random(std::move(space), problem.algorithm.seed),
      "hyperband (random points, rungs at " + list_steps(ladder_of(problem)) + ")");
}

Result<std::unique_ptr<Sampler>> cmaes(const Problem& problem, Space space) {
  const api::Algorithm& algorithm = problem.algorithm;
  FETTLE_TRY(check_population(algorithm));
  return make_cmaes(std::move(space), algorithm.seed, algorithm.population_size,
                    problem.objectives);
}

Result<std::unique_ptr<Sampler>> nsga2(const Problem& problem, Space space) {
  const api::Algorithm& algorithm = problem.algorithm;
  FETTLE_TRY(check_population(algorithm));
  return make_nsga2(std::move(space), algorithm.seed,
                    algorithm.population_size.value_or(kNsga2Population), problem.objectives);
}

// A value without a case does not compile.
Result<std::unique_ptr<Sampler>> make_named(const Problem& problem) {
  FETTLE_TRY(check_cost(problem));
  FETTLE_ASSIGN(Space space, Space::make(problem.parameters));
  const std::int64_t seed = problem.algorithm.seed;
  switch (problem.algorithm.name) {
    case AlgorithmKind::kAuto:
      return choose(problem, space);
    case AlgorithmKind::kGrid:
      return grid(space, problem.algorithm);
    case AlgorithmKind::kRandom:
      return make_random(std::move(space), seed);
    case AlgorithmKind::kSobol:
      return make_sobol(std::move(space), seed);
    case AlgorithmKind::kTpe:
      return tpe(problem, std::move(space));
    case AlgorithmKind::kGp:
      return gp(problem, std::move(space));
    case AlgorithmKind::kEhvi:
      return ehvi(problem, std::move(space));
    case AlgorithmKind::kPortfolio:
      return make_gp(std::move(space), seed, {.tpe_prior = true, .revision = problem.revision},
                     problem.objectives);
    case AlgorithmKind::kCmaes:
      return cmaes(problem, std::move(space));
    case AlgorithmKind::kNsga2:
      return nsga2(problem, std::move(space));
    case AlgorithmKind::kHyperband:
      return hyperband(problem, std::move(space));
    case AlgorithmKind::kBohb:
      return bohb(problem);
    case AlgorithmKind::kPbt:
    case AlgorithmKind::kPb2:
      return make_population(problem, std::move(space));
    case AlgorithmKind::kSchedule:
      return make_schedule(problem, space);
  }
  return invalid("there is no such algorithm");  // the enum has no other value
}

}  // namespace

Result<std::unique_ptr<Sampler>> make_sampler(const Problem& problem) {
  FETTLE_ASSIGN(std::unique_ptr<Sampler> sampler, make_named(problem));
  // settle_fidelity() has turned `auto` into bohb. choose() reports its other decisions.
  const bool by_fidelity =
      !problem.fidelity.empty() && problem.algorithm.name != AlgorithmKind::kAuto;
  if (by_fidelity) sampler = auto_chosen(std::move(sampler), problem.fidelity);
  if (!starts_warm(problem)) return sampler;
  return make_warm_start(problem, std::move(sampler));
}

}  // namespace fettle::search
