// fettle-search-schedules: the value of searches with learning curves, for each family of made-up
// curves (search/testing/curves.h): fettle-search-schedules [--problems N] [--first K] [--work W]
// NAME...
//
// NAME is an algorithm, or algorithm+rule. The score of a search is the decimal logarithm of the
// number of random full trainings whose best end is expected to equal that of the trial it
// recommends: 1 equals 10 of them, 2 equals 100. So families compare, and a difference of 0.3 is a
// factor of two in work. Eight workers.
//
// --trials N gives each search N trials instead, and prints the work that it made of them: the
// value of a search under a Study's budget of trials.
//
// --stopping RULE instead judges a rule on random points: the share of the steps it saved; how many
// of the trials it stopped would have ended better than all results known by then; and how many of
// all trials that did, or would have, it stopped.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/trial/trial.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/testing/curves.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

constexpr std::int64_t kWorkers = 8;
constexpr std::int64_t kWork[] = {8, 15, 25, 40};  // full trainings
constexpr int kReference = 20'000;                 // random full trainings

std::int64_t ticks_of(std::int64_t work) { return work * kCurveSteps / kWorkers; }

std::vector<double> random_ends(const CurveProblem& curves) {
  const std::unique_ptr<Sampler> sampler =
      make_sampler(problem_of(curves.parameters, "random", 99)).value();
  std::vector<double> out;
  for (const Json& point : sampler->suggest({}, kReference).points) {
    out.push_back(curves.clear(point, kCurveSteps));
  }
  std::sort(out.begin(), out.end());
  return out;
}

double score(const CurveProblem& curves, const std::vector<double>& ends, const Training& done,
             std::int64_t ticks) {
  std::int64_t best = -1;
  for (const Training::Best& each : done.bests) {
    if (each.tick < ticks) best = each.trial;
  }
  if (best < 0) return 0;
  const Json& point = done.history.trials[static_cast<std::size_t>(best)];
  const double end = curves.clear(point, kCurveSteps);
  const auto better = std::lower_bound(ends.begin(), ends.end(), end) - ends.begin();
  return std::log10(kReference / (static_cast<double>(better) + 1));
}

Problem problem_for(const std::string& name, const CurveProblem& curves, std::uint64_t number) {
  const std::size_t plus = name.find('+');
  Problem out =
      problem_of(curves.parameters, name.substr(0, plus), static_cast<std::int64_t>(number) + 1);
  out.resource = {"epoch", 1, kCurveSteps};
  out.parallelism = kWorkers;
  if (plus == std::string::npos) return out;
  out.early_stopping.emplace();
  const std::string rule = name.substr(plus + 1);
  out.early_stopping->promote = rule == "promote";
  out.early_stopping->name =
      api::from_string<api::StoppingKind>(rule).value_or(api::StoppingKind::kAsha);
  return out;
}

struct Sums {
  double n = 0;
  double sum = 0;
  double squares = 0;
  void add(double x) {
    n += 1;
    sum += x;
    squares += x * x;
  }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt(std::max(0.0, squares / n - mean() * mean()) / n); }
};

}  // namespace

// Counts trials that a rule stopped, and trials that would have ended better than all before them.
struct Stops {
  double steps = 0;
  double trials = 0;
  double stopped = 0;
  double better = 0;
  double both = 0;

  void add(const CurveProblem& curves, const History& history) {
    double best = std::numeric_limits<double>::infinity();
    for (const Event& event : history.events) {
      if (event.fact.kind == api::FactKind::kRung) continue;
      const bool is_stopped = event.fact.kind == api::FactKind::kStopped;
      const Json& point = history.trials[static_cast<std::size_t>(event.trial)];
      const double end = curves.loss(point, kCurveSteps);
      steps += static_cast<double>(event.fact.step);
      trials += 1;
      stopped += is_stopped ? 1 : 0;
      better += end < best ? 1 : 0;
      both += is_stopped && end < best ? 1 : 0;
      if (!is_stopped) best = std::min(best, end);
    }
  }
};

void measure_stopping(std::uint64_t first, std::uint64_t problems, const std::string& rule) {
  std::printf("%-12s %-12s %-24s %s\n", "", "steps saved", "stopped, though better",
              "better, yet stopped");
  for (const std::string& family : curve_families()) {
    Stops sums;
    for (std::uint64_t number = first; number < first + problems; ++number) {
      const CurveProblem curves = curve_problem(family, number);
      const Problem problem = problem_for("random+" + rule, curves, number);
      sums.add(curves, train(problem, curves.loss, kWorkers, ticks_of(40)).history);
    }
    std::printf("%-12s %5.1f %%      %5.1f %% of %-12d %5.1f %% of %d\n", family.c_str(),
                100 * (1 - sums.steps / (kCurveSteps * sums.trials)),
                100 * sums.both / sums.stopped, static_cast<int>(sums.stopped),
                100 * sums.both / sums.better, static_cast<int>(sums.better));
  }
}

void measure_trials(std::uint64_t first, std::uint64_t problems, std::int64_t trials,
                    const std::vector<std::string>& names) {
  constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  std::printf("%d trials: score, and work in full trainings\n", static_cast<int>(trials));
  for (const std::string& family : curve_families()) {
    std::map<std::string, Sums> scores;
    std::map<std::string, Sums> work;
    for (std::uint64_t number = first; number < first + problems; ++number) {
      const CurveProblem curves = curve_problem(family, number);
      const std::vector<double> ends = random_ends(curves);
      for (const std::string& name : names) {
        Problem problem = problem_for(name, curves, number);
        problem.max_trials = trials;
        const Training done = train(problem, curves.loss, kWorkers, kNoEnd);
        scores[name].add(score(curves, ends, done, kNoEnd));
        work[name].add(static_cast<double>(done.steps) / kCurveSteps);
      }
    }
    for (const std::string& name : names) {
      std::printf("%-12s %-18s %.2f +- %.2f  %5.1f\n", family.c_str(), name.c_str(),
                  scores[name].mean(), scores[name].error(), work[name].mean());
    }
  }
}

void measure(std::uint64_t first, std::uint64_t problems, std::int64_t work,
             const std::vector<std::string>& names) {
  std::map<std::string, std::map<std::string, std::vector<Sums>>> table;
  std::map<std::string, double> seconds;
  for (const std::string& family : curve_families()) {
    for (std::uint64_t number = first; number < first + problems; ++number) {
      const CurveProblem curves = curve_problem(family, number);
      const std::vector<double> ends = random_ends(curves);
      for (const std::string& name : names) {
        std::vector<Sums>& sums = table[name][family];
        sums.resize(std::size(kWork));
        const Problem problem = problem_for(name, curves, number);
        const auto begin = std::clock();
        const Training done = train(problem, curves.loss, kWorkers, ticks_of(work));
        for (std::size_t i = 0; i < std::size(kWork); ++i) {
          sums[i].add(score(curves, ends, done, ticks_of(kWork[i])));
        }
        seconds[name] += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      }
    }
  }
  for (std::size_t i = 0; i < std::size(kWork) && kWork[i] <= work; ++i) {
    std::printf("\nafter %d full trainings, %d problems a family\n%-18s",
                static_cast<int>(kWork[i]), static_cast<int>(problems), "");
    for (const std::string& family : curve_families()) std::printf(" %-12s", family.c_str());
    std::printf(" %-6s\n", "mean");
    for (const std::string& name : names) {
      std::printf("%-18s", name.c_str());
      double mean = 0;
      for (const std::string& family : curve_families()) {
        const Sums& sums = table[name][family][i];
        std::printf(" %.2f +- %.2f", sums.mean(), sums.error());
        mean += sums.mean() / static_cast<double>(curve_families().size());
      }
      std::printf(" %.2f  (%.1f s)\n", mean, seconds[name]);
    }
  }
}

}  // namespace fettle::search

int main(int argc, char** argv) {
  std::uint64_t first = 1000;
  std::uint64_t problems = 20;
  std::int64_t work = 40;
  std::int64_t trials = 0;
  std::string stopping;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--problems" && i + 1 < argc) {
      problems = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--first" && i + 1 < argc) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--stopping" && i + 1 < argc) {
      stopping = argv[++i];
    } else if (word == "--trials" && i + 1 < argc) {
      trials = std::strtoll(argv[++i], nullptr, 10);
    } else if (word == "--work" && i + 1 < argc) {
      work = std::strtoll(argv[++i], nullptr, 10);
    } else {
      names.push_back(word);
    }
  }
  if (!stopping.empty()) {
    fettle::search::measure_stopping(first, problems, stopping);
    return 0;
  }
  if (trials > 0) {
    fettle::search::measure_trials(first, problems, trials, names);
    return 0;
  }
  fettle::search::measure(first, problems, work, names);
}
