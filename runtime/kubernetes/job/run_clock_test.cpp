// Clocks that are ten minutes off, and the times that deadlines then rest on.
#include "runtime/kubernetes/job/run_clock.h"

#include <gtest/gtest.h>

namespace fettle::kubernetes {
namespace {

using core::RunState;

constexpr std::int64_t kOff = 600'000;
constexpr std::int64_t kNow = 10'000'000;

core::Run running(std::int64_t started_ms) {
  core::Run run;
  run.state = RunState::kRunning;
  run.started_ms = started_ms;
  return run;
}

core::Run exited(std::int64_t started_ms, std::int64_t ended_ms) {
  core::Run run = running(started_ms);
  run.state = RunState::kExited;
  run.ended_ms = ended_ms;
  return run;
}

TEST(RunClock, ARunBeganBetweenTheLooksThatSawItWaitAndRun) {
  const struct {
    const char* what;
    std::int64_t node_says;
    std::int64_t began;
  } cases[] = {
      {"right", kNow + 4'000, kNow + 4'000},
      {"behind", kNow + 4'000 - kOff, kNow},
      {"ahead", kNow + 4'000 + kOff, kNow + 5'000},
      {"unknown", 0, 0},
  };
  for (const auto& c : cases) {
    RunClock clock;
    core::Run run;
    clock.correct(run, 0, kNow);
    run = running(c.node_says);
    clock.correct(run, 0, kNow + 5'000);
    EXPECT_EQ(run.started_ms, c.began) << c.what;
  }
}

TEST(RunClock, ARunThatWasNotSeenWaitingIsBelievedAsFarAsThePastGoes) {
  for (const std::int64_t said : {kNow - 9'000, kNow + kOff}) {
    RunClock clock;
    core::Run run = running(said);
    clock.correct(run, 0, kNow);
    EXPECT_EQ(run.started_ms, std::min(said, kNow));
  }
}

TEST(RunClock, ARunEndedAfterItWasLastSeenRunning) {
  const struct {
    const char* what;
    std::int64_t off;
    std::int64_t ended;
  } cases[] = {{"right", 0, kNow + 58'000},
               {"behind", -kOff, kNow + 50'000},
               {"ahead", kOff, kNow + 60'000}};
  for (const auto& c : cases) {
    RunClock clock;
    core::Run run = running(kNow + c.off);
    clock.correct(run, 0, kNow);
    clock.correct(run, 0, kNow + 50'000);
    run = exited(kNow + c.off, kNow + 58'000 + c.off);
    clock.correct(run, 0, kNow + 60'000);
    EXPECT_EQ(run.ended_ms, c.ended) << c.what;
  }
}

TEST(RunClock, AReportIsAsOldAsTheFirstSightOfIt) {
  RunClock clock;
  core::Run run = running(kNow);
  clock.correct(run, 0, kNow);
  EXPECT_EQ(run.heard_ms, 0);
  clock.correct(run, kNow - kOff, kNow + 1'000);
  EXPECT_EQ(run.heard_ms, kNow + 1'000);
  clock.correct(run, kNow - kOff, kNow + 9'000);
  EXPECT_EQ(run.heard_ms, kNow + 1'000) << "it is the same report";
  clock.correct(run, kNow - kOff + 1, kNow + 20'000);
  EXPECT_EQ(run.heard_ms, kNow + 20'000);
}

TEST(RunClock, RemembersSinceWhenAPodIsOnItsWayOut) {
  RunClock clock;
  EXPECT_EQ(clock.note_ending(false, kNow), 0);
  EXPECT_EQ(clock.note_ending(true, kNow + 1), kNow + 1);
  EXPECT_EQ(clock.note_ending(true, kNow + 2), kNow + 1);
  EXPECT_EQ(clock.note_ending(false, kNow + 3), 0);
}

}  // namespace
}  // namespace fettle::kubernetes
