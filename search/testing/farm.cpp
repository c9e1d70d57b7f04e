#include "search/testing/farm.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/philox.h"
#include "search/rungs/population.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/testing/problems.h"

namespace fettle::search::testing {
namespace {

constexpr int kMostTicks = 100'000;
constexpr int kMostFailures = 20;

class Farm {
 public:
  Farm(const Problem& problem, const FarmSettings& settings, const Train& train)
      : problem_(problem),
        settings_(settings),
        train_(train),
        sampler_(make_sampler(problem).value()),
        ladder_(ladder_of(problem)),
        random_(settings.seed, 77) {}

  Harvest work() {
    for (int tick = 0; tick < kMostTicks; ++tick) {
      fill();
      if (running_.empty()) return std::move(out_);
      const std::vector<std::size_t> now = running_;
      for (const std::size_t trial : now) {
        if (random_.uniform() >= settings_.laziness) advance(trial);
      }
    }
    complain("it does not end");
    return std::move(out_);
  }

 private:
  void complain(const std::string& what) { out_.complaints.push_back(what); }

  void fill() {
    while (static_cast<std::int64_t>(running_.size()) < settings_.workers) {
      History& history = out_.history;
      if (trials_missing(problem_, history) > 0) {
        Stage stage{.until_step = problem_.resource.max};
        if (promotes(problem_)) stage = first_stages(problem_, history, 1).at(0);
        const Suggestion next = sampler_->suggest(history, 1);
        if (!next.points.empty()) {
          begin(next.points[0], stage);
          continue;
        }
        if (!promotes(problem_)) return;
      }
      if (!promotes(problem_)) return;
      if (const auto on = next_promotion(problem_, history, true)) {
        history.stages[static_cast<std::size_t>(on->trial)] = on->stage;
        running_.push_back(static_cast<std::size_t>(on->trial));
      } else if (const auto in = next_replacement(problem_, history, true)) {
        begin(in->parameters, in->stage);
      } else {
        return;
      }
    }
  }

  void begin(const Json& parameters, const Stage& stage) {
    trials_.push_back({out_.history.trials.size(), parameters, 0, {}});
    out_.history.trials.push_back(parameters);
    if (promotes(problem_)) out_.history.stages.push_back(stage);
    running_.push_back(trials_.size() - 1);
    checkpoints_.emplace_back();
    const auto members = problem_.max_trials;
    std::int64_t alive = 0;
    for (const Stage& other : out_.history.stages) alive += other.replaces ? 0 : 1;
    if (promotes(problem_) && alive > members) complain("the population has grown");
  }

  // A trial reads its parent's checkpoint when its first step begins, however late that is.
  bool load_parent(std::size_t trial) {
    if (trials_[trial].step > 0 || !promotes(problem_)) return true;
    const std::optional<Origin>& parent = out_.history.stages[trial].parent;
    if (!parent) return true;
    const auto& kept = checkpoints_[static_cast<std::size_t>(parent->trial)];
    const auto found = kept.find(parent->step);
    if (found == kept.end()) {
      complain("the checkpoint at " + std::to_string(parent->step) + " of " +
               std::to_string(parent->trial) + " is gone");
      return false;
    }
    trials_[trial].weights = found->second;
    trials_[trial].step = static_cast<std::uint64_t>(parent->step);
    return true;
  }

  void advance(std::size_t trial) {
    if (!load_parent(trial)) return;
    FarmTrial& training = trials_[trial];
    ++training.step;
    ++out_.steps;
    double loss = train_(training);
    if (failures_ < kMostFailures && random_.uniform() < settings_.failure) {
      ++failures_;
      learn(trial, api::FactKind::kFailed, std::nullopt);
      std::erase(running_, trial);
      return;
    }
    const auto step = static_cast<std::int64_t>(training.step);
    if (!std::binary_search(ladder_.begin(), ladder_.end(), step)) return;
    save(trial);
    std::optional<double> value = loss;
    if (random_.uniform() < settings_.not_a_number) value.reset();
    if (step == problem_.resource.max) {
      learn(trial, api::FactKind::kResult, value);
      ++out_.results;
      if (value) out_.best = std::min(out_.best, *value);
    } else {
      learn(trial, api::FactKind::kRung, value);
      if (out_.history.stages[trial].until_step != step) return;
      learn(trial, api::FactKind::kStopped, value);
    }
    std::erase(running_, trial);
  }

  void save(std::size_t trial) {
    auto& kept = checkpoints_[trial];
    kept[static_cast<std::int64_t>(trials_[trial].step)] = trials_[trial].weights;
    while (static_cast<std::int64_t>(kept.size()) > kKeptIntervals) kept.erase(kept.begin());
  }

  void learn(std::size_t trial, api::FactKind kind, std::optional<double> value) {
    Event event = fact(static_cast<std::int64_t>(trial), kind,
                       static_cast<std::int64_t>(trials_[trial].step), value);
    event.fact.seq = static_cast<std::int64_t>(out_.history.events.size()) + 1;
    out_.history.events.push_back(std::move(event));
  }

  const Problem& problem_;
  const FarmSettings settings_;
  const Train& train_;
  const std::unique_ptr<Sampler> sampler_;
  const std::vector<std::int64_t> ladder_;
  Random random_;
  int failures_ = 0;
  std::vector<FarmTrial> trials_;
  std::vector<std::size_t> running_;
  std::vector<std::map<std::int64_t, std::vector<double>>> checkpoints_;  // by trial, by step
  Harvest out_;
};

}  // namespace

Harvest work(const Problem& problem, const FarmSettings& settings, const Train& train) {
  return Farm(problem, settings, train).work();
}

}  // namespace fettle::search::testing
