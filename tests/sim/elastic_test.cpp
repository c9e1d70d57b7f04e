// The elastic policy (core/study/elastic.h) against fixed world sizes, on the same trace: 200
// trials on four nodes of eight GPUs that come and go. docs/gpus.md has the table that this prints.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/philox.h"
#include "core/conditions.h"
#include "core/control/manager.h"
#include "tests/sim/gpu_nodes.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

constexpr std::int64_t kNodes = 4;
constexpr std::int64_t kGpusOfNode = 8;
constexpr std::int64_t kTrials = 200;

// Nodes are up for 40 minutes and away for 8 on average, like spot machines; the first one stays.
std::vector<NodeChange> spot_trace(std::int64_t began_ms) {
  std::vector<NodeChange> changes;
  constexpr std::int64_t kEndMs = 100LL * 3'600 * 1'000;
  for (std::int64_t node = 0; node < kNodes; ++node) {
    Random random(static_cast<std::uint64_t>(1'000 + node));
    std::int64_t at_ms = began_ms;
    bool up = true;
    while (at_ms < began_ms + kEndMs) {
      changes.push_back({at_ms, node, up ? kGpusOfNode : 0});
      if (node == 0) break;
      const double mean_s = up ? 40 * 60 : 8 * 60;
      at_ms += static_cast<std::int64_t>(-std::log(1 - random.uniform()) * mean_s * 1000) + 1'000;
      up = !up;
    }
  }
  std::sort(changes.begin(), changes.end(),
            [](const NodeChange& a, const NodeChange& b) { return a.at_ms < b.at_ms; });
  return changes;
}

struct Used {
  double offered = 0;
  double held = 0;
  double useful = 0;
  double hours = 0;
  std::int64_t resizes = 0;
  api::TrialCounts trials;
};

class ElasticTrace {
 public:
  explicit ElasticTrace(api::Workers workers)
      : nodes_(clock_, spot_trace(clock_.now_ms()), work, digits_curve) {
    study_ = digits_study();
    study_.spec.trial.heartbeat.reset();
    study_.spec.trial.workers = workers;
    study_.spec.trial.workers.sizing = api::WorkersSizing::kAuto;
    study_.spec.budget.trials = kTrials;
    study_.spec.budget.parallelism = 8;
    study_.spec.resource = {"epoch", 1, 27};
    study_.spec.early_stopping = api::EarlyStopping{};
    study_.spec.early_stopping->name = api::StoppingKind::kAsha;
    CHECK(store_.create_study(study_).ok(), "the Study could not be created");
  }

  Used run() {
    control::Manager manager(store_, nodes_, clock_, observer_);
    const std::int64_t began_ms = clock_.now_ms();
    while (!core::is_finished(study().status)) {
      while (manager.step().value()) {
      }
      const std::int64_t nodes = nodes_.next_ms();
      const std::int64_t next = std::max(manager.next_ms(), clock_.now_ms() + 1);
      clock_.advance_to(nodes < 0 ? next : std::min(nodes, next));
      CHECK(clock_.now_ms() < began_ms + 90LL * 3'600 * 1'000, "the Study does not end");
      nodes_.advance();
    }
    Used used{nodes_.offered(), nodes_.held(), nodes_.useful(), 0, 0, study().status.trials};
    used.hours = static_cast<double>(clock_.now_ms() - began_ms) / 3'600'000;
    for (const std::string& event : store_.events()) used.resizes += event == "Resized" ? 1 : 0;
    return used;
  }

  api::Study study() { return store_.objects().studies.at({"", "digits"}); }
  SimStore& store() { return store_; }

 private:
  // Between a quarter of a GPU-hour and a whole one for each step.
  static double work(std::int64_t index) { return 900.0 * static_cast<double>(1 + index % 4); }

  Faults faults_;
  SimClock clock_;
  SimStore store_{faults_};
  GpuNodes nodes_;
  control::Observer observer_;
  api::Study study_;
};

void print(const std::string& name, const Used& used) {
  std::printf("%-10s %8.1f %7.0f%% %7.0f%% %8lld\n", name.c_str(), used.hours,
              100 * used.held / used.offered, 100 * used.useful / used.offered,
              static_cast<long long>(used.resizes));
}

double use_of(const Used& used) { return used.useful / used.offered; }

// Among the fixed sizes, 4 is the largest with which all eight trials of the Study run at once;
// with 8, four of them wait.
TEST(ElasticTrace, UsesMoreOfTheGpusThanAnyFixedWorldSize) {
  std::printf("%-10s %8s %8s %8s %8s\n", "workers", "hours", "held", "useful", "resizes");
  std::map<std::int64_t, Used> fixed;
  for (const std::int64_t size : {1, 2, 4, 8}) {
    fixed[size] = ElasticTrace({size, size, std::nullopt}).run();
    print(std::to_string(size), fixed[size]);
    EXPECT_EQ(fixed[size].trials.failed, 0);
    EXPECT_EQ(fixed[size].resizes, 0);
  }
  const Used elastic = ElasticTrace({1, 16, std::nullopt}).run();
  print("1 to 16", elastic);
  EXPECT_EQ(elastic.trials.failed, 0);
  EXPECT_EQ(elastic.trials.completed + elastic.trials.stopped, kTrials);
  EXPECT_GE(use_of(elastic), 1.3 * use_of(fixed[4]));
  EXPECT_GE(use_of(elastic), use_of(fixed[8]));
}

}  // namespace
}  // namespace fettle::sim
