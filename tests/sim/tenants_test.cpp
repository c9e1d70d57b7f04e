// Studies that share an operator: a large one over a slow API server does not delay the others, and
// does not look stuck.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/study/study_plan.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

constexpr std::int64_t kSlowWriteMs = 300;

class Observed : public control::Observer {
 public:
  void on_reconciled(const control::ReconcileRecord& record) override {
    longest_ms = std::max(longest_ms, record.took_ms);
    most_actions = std::max(most_actions, record.actions);
    if (record.item.kind != control::Kind::kStudy) return;
    const bool is_large = record.item.key.name == "large";
    in_a_row = is_large ? in_a_row + 1 : 0;
    most_in_a_row = std::max(most_in_a_row, in_a_row);
    if (is_large) ++looks;
  }

  std::int64_t longest_ms = 0;
  int most_actions = 0;
  int looks = 0;
  int in_a_row = 0;
  int most_in_a_row = 0;
};

TEST(Tenants, AThousandTrialsOverASlowApiServerKeepNobodyWaiting) {
  Faults faults;
  SimClock clock;
  SimStore store(faults);
  SimRuns runs(faults, clock, all_finish, digits_curve);
  Observed observed;
  api::Study large = digits_study();
  large.metadata.name = "large";
  large.spec.budget.trials = large.spec.budget.parallelism = 1'000;
  api::Study small = digits_study();
  small.metadata.name = "small";
  ASSERT_TRUE(store.create_study(large).ok());
  ASSERT_TRUE(store.create_study(small).ok());
  control::Manager manager(store, runs, clock, observed);
  std::int64_t longest_silence_ms = 0;
  faults.on_write([&] {
    clock.advance_to(clock.now_ms() + kSlowWriteMs);
    longest_silence_ms = std::max(longest_silence_ms, manager.oldest_reconcile_ms());
    manager.note_progress();
  });
  const std::int64_t began_ms = clock.now_ms();
  const auto created = [&](const char* study) {
    return std::ssize(store.list_trials({"", study}).value());
  };
  std::int64_t small_began_ms = 0;
  while (created("large") < 1'000) {
    ASSERT_TRUE(manager.step().value()) << "there is always something to do";
    if (small_began_ms == 0 && created("small") > 0) small_began_ms = clock.now_ms();
  }
  EXPECT_LE(observed.most_actions, 2 * core::kMaxWrites) << "facts, then decisions";
  EXPECT_GE(observed.looks, 1'000 / core::kMaxWrites);
  EXPECT_LE(observed.longest_ms, 2 * core::kMaxWrites * kSlowWriteMs);
  EXPECT_LE(longest_silence_ms, kSlowWriteMs) << "each call that ends is progress (/healthz)";
  ASSERT_NE(small_began_ms, 0);
  EXPECT_LE(small_began_ms - began_ms, 2 * core::kMaxWrites * kSlowWriteMs)
      << "it did not wait for a thousand trials, 300 s";
}

}  // namespace
}  // namespace fettle::sim
