// Samplers for the first points of a population's members, and for the points of a schedule.
// population.h decides which trials continue and which are replaced.
#include "base/philox.h"
#include "search/incremental_sampler.h"
#include "search/rungs/population.h"
#include "search/rungs/rung_table.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

// Suggests points of a sequence that fills the space; if it has fewer points than the population
// has members, some begin alike.
class MemberSampler final : public Sampler {
 public:
  MemberSampler(Space space, std::int64_t seed, std::unique_ptr<Sampler> points,
                std::string description)
      : space_(std::move(space)),
        seed_(seed),
        points_(std::move(points)),
        description_(std::move(description)) {}

  Suggestion suggest(const History& history, std::int64_t n) override {
    Suggestion out = points_->suggest(history, n);
    out.exhausted = false;
    while (static_cast<std::int64_t>(out.points.size()) < n) {
      Random random(draw_key(seed_, Purpose::kPoint), history.trials.size() + out.points.size());
      out.points.push_back(space_.write(space_.draw(random)));
    }
    return out;
  }
  std::string description() const override { return description_; }

 private:
  const Space space_;
  const std::int64_t seed_;
  const std::unique_ptr<Sampler> points_;
  const std::string description_;
};

// Every member begins with the first leg.
class ScheduleSampler final : public Sampler {
 public:
  explicit ScheduleSampler(const Problem& problem)
      : first_(problem.algorithm.legs.front().parameters),
        description_("schedule (legs until " + list_steps(population_ladder(problem)) + ")") {}

  Suggestion suggest(const History& /*history*/, std::int64_t n) override {
    Suggestion out;
    for (std::int64_t i = 0; i < n; ++i) out.points.push_back(first_);
    return out;
  }
  std::string description() const override { return description_; }

 private:
  const Json first_;
  const std::string description_;
};

}  // namespace

Result<std::unique_ptr<Sampler>> make_population(const Problem& problem, Space space) {
  const api::Algorithm& algorithm = problem.algorithm;
  if (!(algorithm.quantile > 0 && algorithm.quantile <= 0.5)) {
    return invalid(name_of(algorithm.name) + " needs a quantile above 0, at most 0.5; found " +
                   Json(algorithm.quantile).dump());
  }
  if (algorithm.interval && *algorithm.interval < 1) {
    return invalid(name_of(algorithm.name) + " needs an interval of at least 1 step; found " +
                   std::to_string(*algorithm.interval));
  }
  std::string what = name_of(algorithm.name);
  if (problem.max_trials > 0) what += " with " + std::to_string(problem.max_trials) + " members";
  const std::vector<std::int64_t> ladder = population_ladder(problem);
  if (ladder.size() > 1) {
    what += ", compared every " + std::to_string(ladder.front()) + " steps";
  }
  FETTLE_ASSIGN(std::unique_ptr<Sampler> points, make_sobol(space, algorithm.seed));
  return std::unique_ptr<Sampler>(std::make_unique<MemberSampler>(
      std::move(space), algorithm.seed, std::move(points), std::move(what)));
}

Result<std::unique_ptr<Sampler>> make_schedule(const Problem& problem, const Space& space) {
  if (problem.algorithm.legs.empty()) {
    return invalid("schedule needs legs: what is trained with which parameters");
  }
  for (const api::ScheduleLeg& leg : problem.algorithm.legs) {
    if (space.read(leg.parameters)) continue;
    return invalid("the leg until " + std::to_string(leg.until_step) + " has the parameters " +
                   leg.parameters.dump() + ", which are no point of the space");
  }
  return std::unique_ptr<Sampler>(std::make_unique<ScheduleSampler>(problem));
}

}  // namespace fettle::search
