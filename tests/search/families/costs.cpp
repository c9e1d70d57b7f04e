// fettle-search-costs: the price that searches pay to find a good trial if trials differ in cost
// (cost_law.h), on random problems (tasks.h).
//
//   fettle-search-costs [--algorithms gp,gp_cost,...] [--kinds bowl,...] [--tasks 10] [--first 0]
//                       [--pending 1] [--laws even,free,rising]
//
// "gp_cost" is gp with costAware. The budget is the mean cost of as many random trials as the
// task's own budget, and twice as many trials. For each law: the mean over the tasks of log2 of the
// cost until a loss was found that 1 % (0.1 %) of random points reach, in average random trials,
// with its standard error; in brackets the number of searches that found one. A search that did not
// counts as twice the budget. Then the same as differences to the first algorithm. With --pending k
// there are always k trials running, as long as they cost.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <queue>

#include "base/check.h"
#include "search/search.h"
#include "search/space/space.h"
#include "search/testing/problems.h"
#include "tests/search/families/cost_law.h"
#include "tests/search/families/options.h"
#include "tests/search/families/tasks.h"

namespace fettle::search::families {
namespace {

constexpr int kPool = 4000;         // random points that define good losses, and costs
constexpr int kEasy = kPool / 100;  // this many of them are as good as the target
constexpr int kHard = kPool / 1000;
constexpr std::int64_t kMostTrials = 2;  // times the task's budget, however cheap they are
constexpr double kNotFound = 2;          // times the budget

struct Market {
  Task task;
  Space space;
  CostLaw law;
  double easy = 0;  // losses to be found
  double hard = 0;
  double mean_cost = 1;  // of random points
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

double loss_at(const Task& task, const Place& place) {
  const double loss = task.loss(place);
  return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
}

Market open_market(const std::string& kind, std::uint64_t number, const std::string& law) {
  Task task = make_task(kind, number);
  auto space = Space::make(task.parameters);
  CHECK(space.ok(), "a task has a valid space");
  Random random(0x6d61726b6574, number);
  std::vector<std::pair<double, Place>> pool;
  for (int i = 0; i < kPool; ++i) {
    Place place = place_of(*space, space->draw(random));
    pool.emplace_back(loss_at(task, place), place);
  }
  std::sort(pool.begin(), pool.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  CostLaw cost = make_cost_law(law, number, task, pool.front().second);
  double sum = 0;
  for (const auto& [loss, place] : pool) sum += cost(place);
  return {std::move(task),   *std::move(space), std::move(cost),
          pool[kEasy].first, pool[kHard].first, sum / kPool};
}

// The cost until either target was reached, in average random trials; infinite: never.
struct Paid {
  double easy = std::numeric_limits<double>::infinity();
  double hard = std::numeric_limits<double>::infinity();
};

Problem problem_of(const Market& market, const std::string& algorithm, std::uint64_t number,
                   std::int64_t pending) {
  Problem out =
      testing::problem_of(market.task.parameters, algorithm, static_cast<std::int64_t>(number));
  out.max_cost = static_cast<double>(market.task.trials) * market.mean_cost;
  out.max_trials = kMostTrials * market.task.trials;
  out.parallelism = pending;
  return out;
}

Paid search(const Market& market, const Problem& problem, std::uint64_t number,
            std::int64_t pending) {
  auto sampler = make_sampler(problem);
  CHECK(sampler.ok(), "the algorithm searches the space");
  Random noise(0x6e6f697365, number);
  using Ending = std::pair<double, std::int64_t>;  // time, trial
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running;
  History history;
  Paid out;
  double now = 0;
  double spent = 0;
  const auto most = static_cast<std::size_t>(problem.max_trials);
  while (spent < *problem.max_cost && history.events.size() < most) {
    if (static_cast<std::int64_t>(running.size()) < pending) {
      const Suggestion next = sampler.value()->suggest(history, 1);
      if (next.points.empty()) break;
      history.trials.push_back(next.points.front());
      const Place place = place_of(market.space, *market.space.read(next.points.front()));
      running.emplace(now + market.law(place),
                      static_cast<std::int64_t>(history.trials.size()) - 1);
      continue;
    }
    const std::int64_t ended = running.top().second;
    now = running.top().first;
    running.pop();
    const Json& parameters = history.trials[static_cast<std::size_t>(ended)];
    const Place place = place_of(market.space, *market.space.read(parameters));
    const double loss = loss_at(market.task, place);
    const double told = loss + market.task.noise * (market.easy - market.hard) * noise.normal();
    Event event = testing::result(ended, std::isfinite(loss) ? std::optional(told) : std::nullopt);
    event.fact.cost = market.law(place);
    spent += *event.fact.cost;
    if (loss <= market.easy) out.easy = std::min(out.easy, spent / market.mean_cost);
    if (loss <= market.hard) out.hard = std::min(out.hard, spent / market.mean_cost);
    history.events.push_back(std::move(event));
  }
  return out;
}

// The mean of one number per search, and its difference from another algorithm's.
class Column {
 public:
  void add(double paid, double budget) {
    logs_.push_back(std::log2(std::min(paid, kNotFound * budget)));
    found_ += std::isfinite(paid) ? 1 : 0;
  }
  void print() const {
    print_mean(logs_);
    std::printf(" (%3.0f %%)", 100 * found_ / static_cast<double>(logs_.size()));
  }
  void print_against(const Column& other) const {
    std::vector<double> differences = logs_;
    for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= other.logs_[i];
    print_mean(differences);
  }

 private:
  static void print_mean(const std::vector<double>& values) {
    double sum = 0;
    double squares = 0;
    for (const double value : values) {
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(values.size());
    const double mean = sum / count;
    const double variance = std::max(0.0, squares / count - mean * mean);
    std::printf(" %5.2f ± %4.2f", mean, std::sqrt(variance / std::max(count - 1, 1.0)));
  }

  std::vector<double> logs_;
  double found_ = 0;
};

struct Row {
  Column easy;
  Column hard;
};

Row measure(const Options& options, const std::string& law, const std::string& algorithm) {
  Row out;
  for (const std::string& kind : options.kinds) {
    for (std::uint64_t i = options.first; i < options.first + options.tasks; ++i) {
      const Market market = open_market(kind, i, law);
      const Problem problem = problem_of(market, algorithm, i, options.pending);
      const Paid paid = search(market, problem, i, options.pending);
      out.easy.add(paid.easy, static_cast<double>(market.task.trials));
      out.hard.add(paid.hard, static_cast<double>(market.task.trials));
    }
  }
  return out;
}

void compare(const Options& options) {
  for (const std::string& law : options.laws) {
    std::optional<Row> first;
    for (const std::string& algorithm : options.algorithms) {
      const Row row = measure(options, law, algorithm);
      if (!first) first = row;
      std::printf("%-8s %-10s", law.c_str(), algorithm.c_str());
      row.easy.print();
      row.hard.print();
      std::printf("   against the first:");
      row.easy.print_against(first->easy);
      row.hard.print_against(first->hard);
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

int main_of(const std::vector<std::string>& arguments) {
  Options options;
  options.algorithms = {"gp", "gp_cost"};
  options.laws = {"even", "free", "rising"};
  if (!read_options(arguments, options)) return 2;
  compare(options);
  return 0;
}

}  // namespace
}  // namespace fettle::search::families

int main(int count, char** values) {
  return fettle::search::families::main_of({values + 1, values + count});
}
