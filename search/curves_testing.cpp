#include "search/curves_testing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "search/rung_table.h"
#include "search/schedule.h"
#include "search/testing.h"

namespace fettle::search::testing {
namespace {

constexpr double kSteps = 27;

double distance(const Json& parameters) {
  double sum = 0;
  for (const auto& [name, best] : {std::pair{"x", 0.3}, std::pair{"y", 0.6}, std::pair{"z", 0.8}}) {
    const double off = parameters.find(name)->as_double() - best;
    sum += off * off;
  }
  return std::sqrt(sum);
}

// A number in [0, 1) that belongs to the configuration alone.
double noise(const Json& parameters) {
  std::uint64_t key = 1;
  for (const char* name : {"x", "y", "z"}) {
    key = mix_keys(key, static_cast<std::uint64_t>(parameters.find(name)->as_double() * 0x1p52));
  }
  return Random(key, 0).uniform();
}

class Trainer {
 public:
  Trainer(const Problem& problem, const Curves& loss, std::int64_t workers)
      : problem_(problem),
        loss_(loss),
        workers_(static_cast<std::size_t>(workers)),
        sampler_(make_sampler(problem).value()),
        rungs_(rung_steps(problem.algorithm, problem.early_stopping, problem.resource)) {
    out_.best_result = std::numeric_limits<double>::infinity();
  }

  Training train(std::int64_t ticks) {
    for (std::int64_t tick = 0; tick < ticks; ++tick) {
      fill();
      if (running_.empty()) break;
      const std::vector<std::size_t> now = running_;
      for (const std::size_t trial : now) advance(trial);
    }
    return std::move(out_);
  }

 private:
  void fill() {
    History& history = out_.history;
    while (running_.size() < workers_) {
      const bool last = problem_.max_trials > 0 &&
                        static_cast<std::int64_t>(history.trials.size()) >= problem_.max_trials;
      if (promotes(problem_)) {
        if (const auto promotion = next_promotion(problem_, history, last)) {
          const auto trial = static_cast<std::size_t>(promotion->trial);
          CHECK(std::count(running_.begin(), running_.end(), trial) == 0, "it is paused");
          history.stages[trial] = promotion->stage;
          begin(trial, " goes on until ", promotion->stage.until_step);
          continue;
        }
      }
      if (last) return;
      const Json point = sampler_->suggest(history, 1).points.at(0);
      std::int64_t until = problem_.resource.max;
      if (promotes(problem_)) {
        history.stages.push_back(first_stages(problem_, history, 1).at(0));
        until = history.stages.back().until_step;
      }
      history.trials.push_back(point);
      steps_.push_back(0);
      begin(history.trials.size() - 1, " begins until ", until);
    }
  }

  void begin(std::size_t trial, const std::string& what, std::int64_t until) {
    running_.push_back(trial);
    out_.log.push_back(std::to_string(trial) + what + std::to_string(until));
  }

  void advance(std::size_t trial) {
    const std::int64_t step = ++steps_[trial];
    ++out_.steps;
    const double loss = loss_(out_.history.trials[trial], step);
    const auto index = static_cast<std::int64_t>(trial);
    const auto learn = [&](api::FactKind kind) {
      Event event = fact(index, kind, step, loss);
      event.fact.seq = static_cast<std::int64_t>(out_.history.events.size()) + 1;
      out_.history.events.push_back(std::move(event));
    };
    if (std::binary_search(rungs_.begin(), rungs_.end(), step)) learn(api::FactKind::kRung);
    if (step == problem_.resource.max) {
      learn(api::FactKind::kResult);
      out_.best_result = std::min(out_.best_result, loss);
    } else if (!is_to_rest(trial, step)) {
      return;
    } else {
      learn(api::FactKind::kStopped);
    }
    std::erase(running_, trial);
  }

  bool is_to_rest(std::size_t trial, std::int64_t step) const {
    if (promotes(problem_)) return step == out_.history.stages[trial].until_step;
    if (!problem_.early_stopping || !std::binary_search(rungs_.begin(), rungs_.end(), step)) {
      return false;
    }
    const auto index = static_cast<std::int64_t>(trial);
    return judge(problem_, *problem_.early_stopping, out_.history, index).verdict == Verdict::kStop;
  }

  const Problem& problem_;
  const Curves& loss_;
  const std::size_t workers_;
  const std::unique_ptr<Sampler> sampler_;
  const std::vector<std::int64_t> rungs_;
  std::vector<std::size_t> running_;
  std::vector<std::int64_t> steps_;  // by trial
  Training out_;
};

}  // namespace

std::vector<CurveFamily> curve_families() {
  const auto informative = [](const Json& parameters, std::int64_t step) {
    return distance(parameters) + 0.5 / std::sqrt(static_cast<double>(step)) - 0.5 / std::sqrt(27);
  };
  const auto uninformative = [](const Json& parameters, std::int64_t step) {
    const double part = static_cast<double>(step) / kSteps;
    const double known = part < 0.2 ? 0 : (part - 0.2) / 0.8;
    return known * distance(parameters) + (1 - known) * (0.5 + noise(parameters));
  };
  // The best learn slowest.
  const auto crossing = [](const Json& parameters, std::int64_t step) {
    const double end = distance(parameters);
    const double part = static_cast<double>(step) / kSteps;
    return end + (1.5 - end) * (1 - part) / (1 + 8 * end * part);
  };
  return {{"informative", informative}, {"uninformative", uninformative}, {"crossing", crossing}};
}

Training train(const Problem& problem, const Curves& loss, std::int64_t workers,
               std::int64_t ticks) {
  return Trainer(problem, loss, workers).train(ticks);
}

}  // namespace fettle::search::testing
