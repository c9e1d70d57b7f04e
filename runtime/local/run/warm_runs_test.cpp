// Runs in workers: real processes under a real supervisor, which behave well or badly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

using api::Outcome;
using testing::HasSubstr;

// A worker as a shell script; without a worker's variables it trains the one trial of its
// environment. Each run executes `body`, in which $run is its name, and which prints a metric.
std::string worker_script(const std::string& body, const std::string& ready = "ready 1 1") {
  return R"(
    body() { echo "pid $$"; )" +
         body + R"(; }
    [ -z "$FETTLE_WORKER_FD" ] && { echo cold; body; exit 0; }
    nonce=$FETTLE_WORKER_NONCE
    exec 9</proc/self/fd/$FETTLE_WORKER_FD
    say() { printf '\036%s %s\n' "$nonce" "$*"; }
    next() {
      while read -r line <&9; do
        case $line in '{"run"'*) run=${line#*:\"}; run=${run%%\"*}; return 0;; esac
      done
      return 1
    }
    say )" +
         ready + R"(
    while next; do say begin $run; body; say end $run 0; done
  )";
}

constexpr const char* kMetric = R"(echo '{"step": 1, "loss": 0.5}')";

api::Study warm_study(const std::string& script) {
  api::Study study = shell_study(script);
  study.spec.trial.execution = api::Execution::kWarm;
  return study;
}

// "" without the file.
std::string text_of(const std::string& path) {
  const Result<std::string> text = read_file(path);
  return text.ok() ? *text : "";
}

class WarmRunsTest : public testing::Test {
 protected:
  void open(double cores = 1000) {
    SessionOptions options = session_options(scratch_.path());
    options.room->cores = cores;
    auto opened = Session::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    session_ = std::move(opened).value();
  }

  core::Run observe(std::int64_t index) {
    const auto seen = session_->runs().observe(shell_trial(index));
    return seen.ok() && !seen->empty() ? seen->front() : core::Run{};
  }

  void start(const api::Study& study, std::int64_t index) {
    if (!session_) open();
    const Status started = session_->runs().start(study, shell_trial(index), 1);
    EXPECT_TRUE(started.ok()) << started.error().message;
  }

  core::Run end_of(std::int64_t index) {
    EXPECT_TRUE(eventually([&] { return observe(index).state == core::RunState::kExited; }));
    return observe(index);
  }

  core::Run train(const api::Study& study, std::int64_t index) {
    start(study, index);
    return end_of(index);
  }

  bool await_text(std::int64_t index, const std::string& text) {
    return eventually([&] { return log(index).find(text) != std::string::npos; });
  }

  std::string log(std::int64_t index) {
    return text_of(session_->layout().log_file("s-" + std::to_string(index), 1));
  }

  // The process that trained the run.
  std::string process_of(std::int64_t index) {
    const std::string text = log(index);
    const std::size_t begin = text.find("pid ");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  }

  Scratch scratch_;
  std::unique_ptr<Session> session_;
};

TEST_F(WarmRunsTest, OneProcessTrainsOneRunAfterAnother) {
  const api::Study study = warm_study(worker_script(kMetric));
  for (std::int64_t i = 0; i < 3; ++i) {
    const core::Run run = train(study, i);
    EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
    ASSERT_TRUE(run.report);
    EXPECT_EQ(run.report->metrics.at("loss"), 0.5);
    EXPECT_EQ(process_of(i), process_of(0));
    EXPECT_TRUE(read_file(session_->layout().outcome_file("s-" + std::to_string(i), 1)).ok());
  }
}

TEST_F(WarmRunsTest, RunsAtOnceHaveAWorkerEach) {
  const api::Study study = warm_study(worker_script(std::string(kMetric) + "; sleep 0.3"));
  start(study, 0);
  start(study, 1);
  EXPECT_EQ(end_of(0).outcome, Outcome::kSucceeded);
  EXPECT_EQ(end_of(1).outcome, Outcome::kSucceeded);
  EXPECT_NE(process_of(0), process_of(1));
}

TEST_F(WarmRunsTest, AProgramThatTakesNoTrialIsTold) {
  const core::Run run = train(warm_study(kMetric), 0);
  EXPECT_EQ(run.outcome, Outcome::kSucceeded);
  EXPECT_EQ(run.report->metrics.at("loss"), 0.5);
  EXPECT_THAT(run.reason, HasSubstr("for trial in fettle.trials()"));
  EXPECT_EQ(train(warm_study(kMetric), 1).outcome, Outcome::kSucceeded);
}

TEST_F(WarmRunsTest, ACrashHitsTheRunThatRan) {
  const api::Study study =
      warm_study(worker_script(std::string(kMetric) + "; case $run in s-1-*) exit 3;; esac"));
  EXPECT_EQ(train(study, 0).outcome, Outcome::kSucceeded);
  const core::Run crashed = train(study, 1);
  EXPECT_EQ(crashed.outcome, Outcome::kFailed);
  EXPECT_EQ(crashed.exit_code, 3);
  EXPECT_EQ(train(study, 2).outcome, Outcome::kSucceeded);
  EXPECT_EQ(process_of(0), process_of(1));
  EXPECT_NE(process_of(2), process_of(1));
}

TEST_F(WarmRunsTest, AnExitCodeInAFrameCountsLikeThatOfAProcess) {
  const api::Study study = warm_study(worker_script("echo oops >&2; say end $run 7"));
  const core::Run run = train(study, 0);
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_THAT(run.reason, HasSubstr("oops"));
  // The next run has a new worker, since this one may be damaged.
  train(study, 1);
  EXPECT_NE(process_of(0), process_of(1));
}

TEST_F(WarmRunsTest, TheRunAfterAFailureHasAProcessOfItsOwn) {
  const struct {
    Outcome earlier;
    bool is_cold;
  } cases[] = {{Outcome::kFailed, true},   {Outcome::kDisrupted, true},
               {Outcome::kHung, true},     {Outcome::kOutOfMemory, true},
               {Outcome::kStopped, false}, {Outcome::kSucceeded, false}};
  const api::Study study = warm_study(worker_script(kMetric));
  open();
  std::int64_t index = 0;
  for (const auto& c : cases) {
    api::Trial trial = shell_trial(index);
    api::RunRecord earlier;
    earlier.run = 0;
    earlier.outcome = c.earlier;
    trial.status.runs.insert(trial.status.runs.begin(), earlier);
    ASSERT_TRUE(session_->runs().start(study, trial, 1).ok());
    EXPECT_EQ(end_of(index).outcome, Outcome::kSucceeded);
    EXPECT_EQ(log(index).find("cold") != std::string::npos, c.is_cold) << int(c.earlier);
    ++index;
  }
}

TEST_F(WarmRunsTest, AStoppedRunLeavesItsWorkerAlive) {
  const api::Study study = warm_study(worker_script(
      std::string(kMetric) +
      "; case $run in s-0-*) while read -r line <&9; do case $line in '{\"stop\"'*) break;; esac; "
      "done; say end $run 143;; esac"));
  start(study, 0);
  ASSERT_TRUE(await_text(0, "loss"));
  ASSERT_TRUE(session_->runs().stop(shell_trial(0), 1).ok());
  EXPECT_EQ(end_of(0).outcome, Outcome::kStopped);
  EXPECT_EQ(train(study, 1).outcome, Outcome::kSucceeded);
  EXPECT_EQ(process_of(0), process_of(1));
}

TEST_F(WarmRunsTest, AStopThatIsIgnoredEndsTheWorker) {
  const api::Study study =
      warm_study(worker_script(std::string(kMetric) + "; case $run in s-0-*) sleep 100;; esac"));
  start(study, 0);
  ASSERT_TRUE(await_text(0, "loss"));
  ASSERT_TRUE(session_->runs().stop(shell_trial(0), 1).ok());
  const core::Run stopped = end_of(0);
  EXPECT_EQ(stopped.outcome, Outcome::kStopped);
  EXPECT_THAT(stopped.reason, HasSubstr("did not end within 0.3s"));
  EXPECT_EQ(train(study, 1).outcome, Outcome::kSucceeded);
  EXPECT_NE(process_of(0), process_of(1));
}

TEST_F(WarmRunsTest, RunsInOtherSlotsAreDisruptedByACrash) {
  api::Study study = warm_study(R"(
    [ -z "$FETTLE_WORKER_FD" ] && exit 0
    printf '\036%s ready 1 2\n\036%s begin s-0-r1\n' $FETTLE_WORKER_NONCE $FETTLE_WORKER_NONCE
    printf '\036%s line s-0-r1 {"step": 1, "loss": 0.5}\n' $FETTLE_WORKER_NONCE
    exec 9</proc/self/fd/$FETTLE_WORKER_FD; read -r line <&9; read -r line <&9
    printf '\036%s begin s-1-r1\n' $FETTLE_WORKER_NONCE
    exit 3)");
  study.spec.trial.slots = 2;
  start(study, 0);
  ASSERT_TRUE(eventually([&] { return observe(0).report.has_value(); }));
  start(study, 1);
  for (std::int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(end_of(i).outcome, Outcome::kDisrupted) << end_of(i).reason;
    EXPECT_THAT(end_of(i).reason, HasSubstr("while it trained several trials"));
  }
  EXPECT_EQ(observe(0).report->metrics.at("loss"), 0.5);
}

TEST_F(WarmRunsTest, ARefusedRunGetsAProcessOfItsOwn) {
  const api::Study study = warm_study(R"(
    [ -z "$FETTLE_WORKER_FD" ] && { echo cold; echo '{"step": 1, "loss": 0.5}'; exit 0; }
    printf '\036%s ready 1 1\n\036%s refuse s-0-r1 it is too large\n' $FETTLE_WORKER_NONCE \
      $FETTLE_WORKER_NONCE
    sleep 100)");
  const core::Run run = train(study, 0);
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
  EXPECT_THAT(log(0), HasSubstr("cold"));
}

TEST_F(WarmRunsTest, AnswersThatDoNotFitAreDropped) {
  const struct {
    const char* frame;
    const char* objection;  // in the worker's log; "" = it is text of the run
  } cases[] = {{"say end s-9-r1 0", "answered for s-9-r1, which it has not"},
               {"say begin $run now", "a frame cannot be read"},
               {"say ready 1 1", "said twice"},
               {"say refuse $run late", "refused s-4-r1 after it began"},
               {R"(printf '\0360000 end %s 0\n' $run)", ""}};
  std::int64_t index = 1;
  for (const auto& c : cases) {
    api::Study study = warm_study(worker_script(std::string(c.frame) + "; sleep 0.05; " + kMetric));
    const core::Run run = train(study, index);
    EXPECT_EQ(run.outcome, Outcome::kSucceeded) << c.frame << ": " << run.reason;
    EXPECT_TRUE(run.report) << c.frame;
    const std::string own = text_of(session_->layout().worker_log(index));
    EXPECT_THAT(own, HasSubstr(c.objection)) << c.frame;
    ++index;
  }
}

TEST_F(WarmRunsTest, AWorkerThatOnlySendsNonsenseIsKilled) {
  const core::Run run = train(warm_study(worker_script("while :; do say nonsense; done")), 0);
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  EXPECT_THAT(run.reason, HasSubstr("does not speak the worker protocol"));
}

TEST_F(WarmRunsTest, AWorkerThatClosesItsAssignmentsIsReplaced) {
  const api::Study study = warm_study(
      worker_script(std::string(kMetric) + "; say end $run 0; exec 9<&-; "
                                           "eval \"exec $FETTLE_WORKER_FD<&-\"; sleep 100"));
  EXPECT_EQ(train(study, 0).outcome, Outcome::kSucceeded);
  EXPECT_EQ(train(study, 1).outcome, Outcome::kSucceeded);
  EXPECT_NE(process_of(0), process_of(1));
}

TEST_F(WarmRunsTest, AWorkerThatClosesItsOutputIsKilled) {
  const core::Run run = train(
      warm_study(worker_script(std::string(kMetric) + "; exec >/dev/null 2>&1; sleep 100")), 0);
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  EXPECT_THAT(run.reason, HasSubstr("it closed its standard output"));
}

TEST_F(WarmRunsTest, OnlyAWorkerThatTakesArgumentsIsShared) {
  for (const bool takes : {false, true}) {
    open();
    const std::int64_t first = takes ? 2 : 0;
    for (std::int64_t i = first; i < first + 2; ++i) {
      const std::string ready = takes ? "ready 1 1 arguments" : "ready 1 1";
      api::Study study = warm_study(worker_script(kMetric, ready));
      Json* const command = study.spec.trial.pod_template.find("spec")
                                ->find("containers")
                                ->as_array()[0]
                                .find("command");
      command->push_back("--index=" + std::to_string(i));
      EXPECT_EQ(train(study, i).outcome, Outcome::kSucceeded);
    }
    EXPECT_EQ(process_of(first) == process_of(first + 1), takes);
    session_.reset();
  }
}

// The machine has room for one process, and a worker has it.
TEST_F(WarmRunsTest, AnIdleWorkerMakesRoomForAProcess) {
  open(/*cores=*/1);
  const api::Study study = warm_study(worker_script(kMetric));
  EXPECT_EQ(train(study, 0).outcome, Outcome::kSucceeded);
  api::Study process = study;
  process.spec.trial.execution = api::Execution::kProcess;
  EXPECT_EQ(train(process, 1).outcome, Outcome::kSucceeded);
  EXPECT_THAT(log(1), HasSubstr("cold"));
  EXPECT_EQ(train(study, 2).outcome, Outcome::kSucceeded);
  EXPECT_NE(process_of(0), process_of(2));
}

TEST_F(WarmRunsTest, AShutdownDisruptsTheRunAndEndsTheWorker) {
  const api::Study study = warm_study(
      worker_script("echo $$ > " + (scratch_ / "worker") + "; " + kMetric + "; sleep 100"));
  start(study, 0);
  ASSERT_TRUE(await_text(0, "loss"));
  session_->runs().shutdown();
  EXPECT_EQ(observe(0).outcome, Outcome::kDisrupted);
  for (const pid_t pid : pids_in(scratch_ / "worker")) EXPECT_FALSE(is_alive(pid));
}

}  // namespace
}  // namespace fettle::local
