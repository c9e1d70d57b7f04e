// fettle-search-families: compares samplers on random problems (tasks.h), for their developers.
//
//   fettle-search-families [--algorithms tpe,gp,...] [--kinds bowl,...] [--tasks 10] [--first 0]
//                          [--pending 1] [--revision 2]
//
// Score: 0 = random search with the same budget, 100 = the optimum, clipped to -100 ... 100; a row
// for each kind, with the standard error of its mean, then the mean of the kinds and the score that
// nine runs in ten reach. With --pending k there are always k trials running, of random durations.
// A search is judged by the trial whose result looked best, as a user would take it, and that trial
// by its loss without noise; random search likewise. The row "expected" has the difference where
// the trial of gp/recommendation.h is taken instead, over the kinds whose results are noisy.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <queue>

#include "base/check.h"
#include "search/gp/recommendation.h"
#include "search/search.h"
#include "search/space/space.h"
#include "search/testing/problems.h"
#include "tests/search/families/options.h"
#include "tests/search/families/tasks.h"

namespace fettle::search::families {
namespace {

constexpr int kPool = 4000;  // random points that measure random search
constexpr int kHalfPool = kPool / 2;
constexpr int kClimbs = 8;               // from the best of these, towards the optimum
constexpr int kStepsOfAClimb = 4000;     // each
constexpr double kDurationSpread = 0.7;  // of the logarithm

constexpr int kNoisySearches = 2000;  // of random search, on a task with noise

// A task with the scale for its losses.
struct Yardstick {
  Task task;
  Space space;
  double best = 0;       // the least known loss
  double random = 0;     // expected best of `trials` random points
  double deviation = 0;  // of the better half of the losses; noise is a share of it
};

Place place_of(const Space& space, const Point& point) {
  Place out = point;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Dimension& dimension = space.dimension(i);
    if (is_active(point[i]) && !dimension.categorical())
      out[i] = dimension.to_unit(point[i]).centre();
  }
  return out;
}

// Infinite if the point has no loss.
double loss_at(const Task& task, const Space& space, const Point& point) {
  const double loss = task.loss(place_of(space, point));
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

// Descends from `unit` by random steps of decreasing size.
double climb(const Task& task, const Space& space, std::vector<double> unit, Random& random) {
  double best = loss_at(task, space, space.from_unit(unit));
  for (int i = 0; i < kStepsOfAClimb; ++i) {
    const double width = std::pow(10.0, -0.5 - 3.5 * i / kStepsOfAClimb);
    std::vector<double> next = unit;
    const bool all = random.below(2) == 0;
    const std::size_t only = random.below(next.size());
    for (std::size_t d = 0; d < next.size(); ++d) {
      if (!all && d != only) continue;
      const bool redraw = space.dimension(d).categorical() ? random.below(4) == 0 : false;
      next[d] = redraw ? random.uniform() : std::clamp(next[d] + width * random.normal(), 0.0, 1.0);
    }
    const double loss = loss_at(task, space, space.from_unit(next));
    if (loss > best) continue;
    best = loss;
    unit = next;
  }
  return best;
}

// Returns the mean loss of the trial that looks best to random search under noise.
double random_by_looks(const Yardstick& yardstick, const std::vector<double>& losses,
                       Random& random) {
  double sum = 0;
  int found = 0;
  for (int search = 0; search < kNoisySearches; ++search) {
    double looks = std::numeric_limits<double>::infinity();
    double loss = looks;
    for (std::int64_t trial = 0; trial < yardstick.task.trials; ++trial) {
      const double drawn = losses[random.below(losses.size())];
      const double told = drawn + yardstick.task.noise * yardstick.deviation * random.normal();
      if (told >= looks) continue;
      looks = told;
      loss = drawn;
    }
    if (!std::isfinite(loss)) continue;
    sum += loss;
    ++found;
  }
  return sum / std::max(found, 1);
}

Yardstick measure(Task task, std::uint64_t number) {
  auto space = Space::make(task.parameters);
  CHECK(space.ok(), "a task has a valid space");
  Yardstick out{std::move(task), std::move(space.value()), 0, 0, 0};
  Random random(0x7961726473, number);
  std::vector<std::pair<double, std::vector<double>>> pool(kPool);
  for (auto& [loss, unit] : pool) {
    unit.resize(out.space.dimensions());
    for (double& x : unit) x = random.uniform();
    loss = loss_at(out.task, out.space, out.space.from_unit(unit));
  }
  std::sort(pool.begin(), pool.end());
  // The least of n draws from the pool is its entry k with probability (1-k/K)^n - (1-(k+1)/K)^n.
  const auto beyond = [&](int k) {
    return std::pow(1 - static_cast<double>(k) / kPool, static_cast<double>(out.task.trials));
  };
  for (int k = 0; k < kPool && std::isfinite(pool[static_cast<std::size_t>(k)].first); ++k) {
    out.random += (beyond(k) - beyond(k + 1)) * pool[static_cast<std::size_t>(k)].first;
  }
  out.best = pool.front().first;
  for (std::size_t i = 0; i < kClimbs; ++i) {
    out.best = std::min(out.best, climb(out.task, out.space, pool[i].second, random));
  }
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kHalfPool; ++i) {
    sum += pool[i].first;
    squares += pool[i].first * pool[i].first;
  }
  const double mean = sum / kHalfPool;
  out.deviation = std::sqrt(std::max(0.0, squares / kHalfPool - mean * mean));
  if (out.task.noise > 0) {
    std::vector<double> losses;
    losses.reserve(pool.size());
    for (const auto& [loss, unit] : pool) losses.push_back(loss);
    out.random = random_by_looks(out, losses, random);
  }
  return out;
}

struct Run {
  double score = 0;
  double expected = 0;      // the score of the trial that the model expects to be best
  double milliseconds = 0;  // of processor time for each ask
};

double processor_time() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

Run run(const Yardstick& yardstick, const std::string& algorithm, std::uint64_t number,
        const Options& options) {
  const Task& task = yardstick.task;
  Problem problem =
      testing::problem_of(task.parameters, algorithm, static_cast<std::int64_t>(number));
  problem.max_trials = task.trials;
  problem.parallelism = options.pending;
  problem.revision = options.revision;
  auto sampler = make_sampler(problem);
  CHECK(sampler.ok(), "the algorithm searches the space");
  Random noise(0x6e6f697365, number);
  Random durations(0x74696d65, number);
  using Ending = std::pair<double, std::int64_t>;  // time, trial
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running;
  History history;
  double now = 0;
  double looks = std::numeric_limits<double>::infinity();  // the best result, and the loss there
  double best = looks;
  double spent = 0;
  for (std::int64_t trial = 0; trial < task.trials || !running.empty();) {
    if (trial < task.trials && static_cast<std::int64_t>(running.size()) < options.pending) {
      const double begin = processor_time();
      const Suggestion suggestion = sampler.value()->suggest(history, 1);
      spent += processor_time() - begin;
      if (suggestion.points.empty()) break;
      history.trials.push_back(suggestion.points.front());
      running.emplace(now + std::exp(kDurationSpread * durations.normal()), trial++);
      continue;
    }
    const std::int64_t ended = running.top().second;
    now = running.top().first;
    running.pop();
    const Point point = *yardstick.space.read(history.trials[static_cast<std::size_t>(ended)]);
    const double loss = loss_at(task, yardstick.space, point);
    const double told = loss + task.noise * yardstick.deviation * noise.normal();
    if (told < looks) {
      looks = told;
      best = loss;
    }
    history.events.push_back(
        testing::result(ended, std::isfinite(loss) ? std::optional(told) : std::nullopt));
  }
  const double range = std::max(yardstick.random - yardstick.best, 1e-12);
  const auto score = [&](double loss) {
    return std::clamp(100 * (1 - (loss - yardstick.best) / range), -100.0, 100.0);
  };
  Run out{score(best), score(best), spent / static_cast<double>(task.trials)};
  if (const auto taken = gp::recommend(problem, history)) {
    const Json& parameters = history.trials[static_cast<std::size_t>(taken->trial)];
    out.expected = score(loss_at(task, yardstick.space, *yardstick.space.read(parameters)));
  }
  return out;
}

std::string mean_and_error(const std::vector<double>& scores) {
  double sum = 0;
  double squares = 0;
  for (const double score : scores) sum += score;
  const double mean = sum / static_cast<double>(scores.size());
  for (const double score : scores) squares += (score - mean) * (score - mean);
  const double count = static_cast<double>(scores.size());
  const double error = count > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
  char text[40];
  std::snprintf(text, sizeof(text), "%7.1f ± %-4.1f", mean, error);
  return text;
}

// Returns the score that nine runs in ten reach.
double low_quantile(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  return scores[scores.size() / 10];
}

void compare(const Options& options) {
  std::vector<std::vector<double>> all(options.algorithms.size());
  std::vector<std::vector<double>> gained(options.algorithms.size());  // by the expected trial
  std::vector<double> spent(options.algorithms.size(), 0);
  std::printf("%-10s", "");
  for (const std::string& name : options.algorithms) std::printf(" %14s", name.c_str());
  for (const std::string& kind : options.kinds) {
    std::vector<std::vector<double>> scores(options.algorithms.size());
    for (std::uint64_t i = options.first; i < options.first + options.tasks; ++i) {
      const Yardstick yardstick = measure(make_task(kind, i), i);
      for (std::size_t a = 0; a < options.algorithms.size(); ++a) {
        const Run result = run(yardstick, options.algorithms[a], i, options);
        scores[a].push_back(result.score);
        if (yardstick.task.noise > 0) gained[a].push_back(result.expected - result.score);
        spent[a] += result.milliseconds;
      }
    }
    std::printf("\n%-10s", kind.c_str());
    for (std::size_t a = 0; a < scores.size(); ++a) {
      std::printf(" %s", mean_and_error(scores[a]).c_str());
      all[a].insert(all[a].end(), scores[a].begin(), scores[a].end());
    }
    std::fflush(stdout);
  }
  std::printf("\n%-10s", "all");
  for (const auto& scores : all) std::printf(" %s", mean_and_error(scores).c_str());
  std::printf("\n%-10s", "10 %");
  for (const auto& scores : all) std::printf(" %7.1f       ", low_quantile(scores));
  if (!gained.front().empty()) {
    std::printf("\n%-10s", "expected");
    for (const auto& gains : gained) std::printf(" %s", mean_and_error(gains).c_str());
  }
  std::printf("\n%-10s", "ms an ask");
  for (std::size_t a = 0; a < all.size(); ++a) {
    std::printf(" %14.3f", spent[a] / static_cast<double>(all[a].size()));
  }
  std::printf("\n");
}

int main_of(const std::vector<std::string>& arguments) {
  Options options;
  options.algorithms = {"random", "tpe", "gp"};
  if (!read_options(arguments, options)) return 2;
  compare(options);
  return 0;
}

}  // namespace
}  // namespace fettle::search::families

int main(int count, char** values) {
  return fettle::search::families::main_of({values + 1, values + count});
}
