#include "search/testing/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/testing/problems.h"

namespace fettle::search::testing {
namespace {

// The properties that the curves of one problem share.
struct Landscape {
  std::vector<double> best;    // position of the best end, by parameter
  std::vector<double> weight;  // importance, by parameter
  std::uint64_t key = 0;
};

Landscape landscape(std::uint64_t key) {
  Random random(key, 0);
  Landscape out;
  out.key = mix_keys(key, 1);
  const std::size_t parameters = 3 + random.below(4);
  for (std::size_t i = 0; i < parameters; ++i) {
    out.best.push_back(random.uniform());
    out.weight.push_back(std::exp(1.5 * random.uniform()) / std::exp(1.5));
  }
  return out;
}

std::string name_of(std::size_t parameter) { return "p" + std::to_string(parameter); }

double place(const Json& parameters, std::size_t i) {
  return parameters.find(name_of(i))->as_double();
}

// Distance in the parameters from `first` on: 0 at the best position, about 1 far from it.
double distance(const Landscape& of, const Json& parameters, std::size_t first = 0) {
  double sum = 0;
  double most = 0;
  for (std::size_t i = first; i < of.best.size(); ++i) {
    const double off = of.weight[i] * (place(parameters, i) - of.best[i]);
    sum += off * off;
    most += of.weight[i] * of.weight[i];
  }
  return std::sqrt(sum / most) * 2;
}

// Random draws keyed by a configuration, or by one step of it.
Random chance(const Landscape& of, const Json& parameters, std::int64_t step = 0) {
  std::uint64_t key = of.key;
  for (std::size_t i = 0; i < of.best.size(); ++i) {
    key = mix_keys(key, static_cast<std::uint64_t>(place(parameters, i) * 0x1p52));
  }
  return Random(key, static_cast<std::uint64_t>(step));
}

// 1 at the first step, 0 at the last one.
double power_law(double step, double power) {
  const double end = std::pow(kCurveSteps, -power);
  return (std::pow(step, -power) - end) / (1 - end);
}

double steady(const Landscape& of, const Json& parameters, double step) {
  return distance(of, parameters) + 0.5 * power_law(step, 0.5);
}

// The first parameter is the logarithm of a rate: learning is ever faster, until the rate is too
// large.
double rates(const Landscape& of, const Json& parameters, double step) {
  const double edge = 0.4 + 0.5 * of.best[0];
  if (place(parameters, 0) > edge) return 2;
  const double rate = 0.5 * std::pow(20, place(parameters, 0) / edge);
  const double end = 0.8 * distance(of, parameters, 1);
  return end + (2 - end) * std::exp(-rate * step / kCurveSteps * 3);
}

// The first parameter is a capacity: the larger, the faster the loss falls, and the sooner it rises
// again.
double overfit(const Landscape& of, const Json& parameters, double step) {
  const double capacity = place(parameters, 0);
  const double falls = (1.5 - capacity) * power_law(step, 0.5);
  const double rises = 0.6 * capacity * capacity * step / kCurveSteps;
  const double poor = 0.3 * (1 - capacity) * (1 - capacity);
  return 0.8 * distance(of, parameters, 1) + falls + rises + poor;
}

double late(const Landscape& of, const Json& parameters, double step) {
  const double part = step / kCurveSteps;
  const double known = part < 0.2 ? 0 : (part - 0.2) / 0.8;
  const double nothing = 1 + chance(of, parameters).uniform();
  return known * distance(of, parameters) + (1 - known) * nothing;
}

double crossing(const Landscape& of, const Json& parameters, double step) {
  const double end = distance(of, parameters);
  const double part = step / kCurveSteps;
  return end + (2.5 - end) * (1 - part) / (1 + 8 * end * part);
}

using Shape = double (*)(const Landscape&, const Json&, double);
struct Family {
  const char* name;
  Shape shape;
  double noise;
};
constexpr Family kFamilies[] = {{"steady", steady, 0},  {"noisy", steady, 0.1},
                                {"rates", rates, 0.01}, {"overfit", overfit, 0.01},
                                {"late", late, 0},      {"crossing", crossing, 0}};

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
    for (tick_ = 0; tick_ < ticks; ++tick_) {
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
          begin(trial, " resumes until ", promotion->stage.until_step);
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
      if (loss < out_.best_result) {
        out_.best_result = loss;
        out_.bests.push_back({tick_, index});
      }
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
  std::int64_t tick_ = 0;
  Training out_;
};

}  // namespace

std::vector<std::string> curve_families() {
  std::vector<std::string> out;
  for (const Family& family : kFamilies) out.emplace_back(family.name);
  return out;
}

CurveProblem curve_problem(const std::string& family, std::uint64_t number) {
  const auto* const found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                         [&](const Family& each) { return each.name == family; });
  CHECK(found != std::end(kFamilies), "there is such a family");
  const auto which = static_cast<std::uint64_t>(found - std::begin(kFamilies));
  const Landscape of = landscape(mix_keys(number, which));
  CurveProblem out;
  for (std::size_t i = 0; i < of.best.size(); ++i) {
    out.parameters.push_back(real(name_of(i), 0, 1));
  }
  out.clear = [of, shape = found->shape](const Json& parameters, std::int64_t step) {
    return shape(of, parameters, static_cast<double>(step));
  };
  out.loss = [of, shape = found->shape, noise = found->noise](const Json& parameters,
                                                              std::int64_t step) {
    const double clear = shape(of, parameters, static_cast<double>(step));
    return noise > 0 ? clear + noise * chance(of, parameters, step).normal() : clear;
  };
  return out;
}

Training train(const Problem& problem, const Curves& loss, std::int64_t workers,
               std::int64_t ticks) {
  return Trainer(problem, loss, workers).train(ticks);
}

}  // namespace fettle::search::testing
