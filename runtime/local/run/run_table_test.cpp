// Changes of a run as control and people see them.
#include "runtime/local/run/run_table.h"

#include <gtest/gtest.h>

namespace fettle::local {
namespace {

TEST(KnownRun, TheReasonOfAWaitStaysWhileOnlyTheFreeAmountChanges) {
  KnownRun known;
  known.set_reason({"it needs 2 GPUs", "1 of 3 are free"});
  known.set_reason({"it needs 2 GPUs", "0 of 3 are free"});
  EXPECT_EQ(known.run.reason, "it needs 2 GPUs, and 1 of 3 are free");
  known.set_reason({"it needs 1 core", "0 of 2 are free"});
  EXPECT_EQ(known.run.reason, "it needs 1 core, and 0 of 2 are free");
  known.clear_reason();
  known.set_reason({"it needs 1 core", "0.5 of 2 are free"});
  EXPECT_EQ(known.run.reason, "it needs 1 core, and 0.5 of 2 are free");
}

TEST(RunTable, EndsOnlyRunsThatLive) {
  RunTable runs;
  KnownRun ended;
  ended.end(api::Outcome::kSucceeded, "");
  runs.insert({"a", 1}, ended);
  runs.insert({"a", 2}, {});
  EXPECT_EQ(runs.end_all("lost"), (std::vector<RunKey>{{"a", 2}}));
  const std::vector<core::Run> of_a = runs.runs_of("a");
  ASSERT_EQ(of_a.size(), 2U);
  EXPECT_EQ(of_a[0].outcome, api::Outcome::kSucceeded);
  EXPECT_EQ(of_a[1].outcome, api::Outcome::kDisrupted);
  EXPECT_EQ(of_a[1].reason, "lost");
}

TEST(RunTable, TheRunThatIsKnownIsKept) {
  RunTable runs;
  KnownRun first;
  first.run.pod_uid = "first";
  runs.insert({"a", 1}, first);
  runs.insert({"a", 1}, {});
  EXPECT_EQ(runs.find({"a", 1})->run.pod_uid, "first");
  runs.erase({"a", 1});
  EXPECT_FALSE(runs.update({"a", 1}, [](KnownRun&) { FAIL(); }));
}

}  // namespace
}  // namespace fettle::local
