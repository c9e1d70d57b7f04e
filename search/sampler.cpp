// make_sampler: which sampler an algorithm's name means, and what `auto` chooses.
#include <algorithm>

#include "api/names.h"
#include "search/samplers.h"
#include "search/search.h"

namespace fettle::search {
namespace {

constexpr std::int64_t kGridPoints = 10;  // along a Double without a step, unless `points` says

// A sampler with the reason why it was chosen.
class Chosen final : public Sampler {
 public:
  Chosen(std::unique_ptr<Sampler> sampler, std::string reason)
      : sampler_(std::move(sampler)), reason_(std::move(reason)) {}
  Suggestion suggest(const History& history, std::int64_t n) override {
    return sampler_->suggest(history, n);
  }
  std::optional<Explanation> explain(const History& history, const Json& point) override {
    return sampler_->explain(history, point);
  }
  std::string description() const override {
    return "auto: " + sampler_->description() + ", because " + reason_;
  }

 private:
  std::unique_ptr<Sampler> sampler_;
  std::string reason_;
};

Result<TpeSettings> tpe_settings(const api::Algorithm& algorithm) {
  TpeSettings out;
  out.startup_trials = algorithm.startup_trials.value_or(out.startup_trials);
  out.candidates = algorithm.candidates.value_or(out.candidates);
  if (out.startup_trials < 0) {
    return invalid("tpe needs 0 or more startup trials; found " +
                   std::to_string(out.startup_trials));
  }
  if (out.candidates < 1 || out.candidates > api::kMaxCandidates) {
    return invalid("tpe needs 1 to " + std::to_string(api::kMaxCandidates) + " candidates; found " +
                   std::to_string(out.candidates));
  }
  return out;
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

Result<std::unique_ptr<Sampler>> choose(const Problem& problem, Space space) {
  const std::int64_t seed = problem.algorithm.seed;
  const std::uint64_t size = space.size();
  const auto budget = static_cast<std::uint64_t>(std::max<std::int64_t>(problem.max_trials, 0));
  if (budget > 0 && size <= budget) {
    return std::unique_ptr<Sampler>(std::make_unique<Chosen>(
        make_grid(space, seed, kGridPoints, /*shuffle=*/true),
        "the budget of " + std::to_string(budget) + " trials covers all of them"));
  }
  std::string reason = "the space is too large to try every point";
  if (space.finite() && budget > 0) {
    reason = "the space has " + std::to_string(size) + " points and the budget is " +
             std::to_string(budget) + " trials";
  } else if (!space.finite()) {
    reason = "the space has more points than can be counted";
  }
  FETTLE_ASSIGN(const TpeSettings settings, tpe_settings(problem.algorithm));
  return std::unique_ptr<Sampler>(std::make_unique<Chosen>(
      make_tpe(std::move(space), seed, settings, problem.objectives), std::move(reason)));
}

}  // namespace

std::vector<std::string> sampler_names() {
  const auto names = api::algorithm_names();
  return {names.begin(), names.end()};
}

Result<std::unique_ptr<Sampler>> make_sampler(const Problem& problem) {
  FETTLE_ASSIGN(Space space, Space::make(problem.parameters));
  const api::Algorithm& algorithm = problem.algorithm;
  if (algorithm.name == "random") return make_random(std::move(space), algorithm.seed);
  if (algorithm.name == "grid") return grid(space, algorithm);
  if (algorithm.name == "sobol") return make_sobol(std::move(space), algorithm.seed);
  if (algorithm.name == "auto") return choose(problem, std::move(space));
  if (algorithm.name == "tpe") {
    FETTLE_ASSIGN(const TpeSettings settings, tpe_settings(algorithm));
    return make_tpe(std::move(space), algorithm.seed, settings, problem.objectives);
  }
  std::string known;
  for (const std::string& name : sampler_names()) known += (known.empty() ? "" : ", ") + name;
  return invalid("there is no algorithm " + Json(algorithm.name).dump() + "; there are " + known);
}

}  // namespace fettle::search
