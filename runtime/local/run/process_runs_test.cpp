// Runs as real processes under a real supervisor: trials behave well or badly, and the outcome and
// the message follow.
#include "runtime/local/run/process_runs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "core/names.h"
#include "runtime/local/log/trial_log.h"
#include "runtime/local/process/process_tree.h"
#include "runtime/local/testing/process_test.h"
#include "runtime/make_trial_file.h"

namespace fettle::local {
namespace {

using api::Outcome;
using testing::HasSubstr;

// A grace period that no process needs in full, however busy the machine.
constexpr double kPatient = 200;

class ProcessRunsTest : public testing::Test {
 protected:
  ProcessRunsTest() {
    auto opened = open_session(scratch_.path());
    EXPECT_TRUE(opened.ok());
    session_ = std::move(opened).value();
  }

  ProcessRuns& runs() { return session_->runs(); }

  core::Run observe(std::int64_t index = 0) {
    const auto seen = runs().observe(shell_trial(index));
    return seen.ok() && !seen->empty() ? seen->front() : core::Run{};
  }

  bool await_exit(std::int64_t index = 0) {
    return eventually([&] { return observe(index).state == core::RunState::kExited; });
  }

  core::Run run_to_end(const api::Study& study, std::int64_t index = 0) {
    const Status started = runs().start(study, shell_trial(index), 1);
    EXPECT_TRUE(started.ok()) << started.error().message;
    EXPECT_TRUE(await_exit(index));
    return observe(index);
  }

  core::Run run_script(const std::string& script) { return run_to_end(shell_study(script)); }

  std::string log() { return read_file(session_->layout().log_file("s-0", 1)).value(); }

  Scratch scratch_;
  std::unique_ptr<Session> session_;
};

TEST_F(ProcessRunsTest, AMetricOnStandardOutputIsTheResult) {
  const core::Run run = run_script("echo hello; echo '{\"step\": 1, \"loss\": 0.5}'; echo bye >&2");
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->metrics.at("loss"), 0.5);
  EXPECT_THAT(log(), HasSubstr("hello"));
  EXPECT_THAT(log(), HasSubstr("bye"));
  EXPECT_TRUE(read_file(session_->layout().outcome_file("s-0", 1)).ok());
}

TEST_F(ProcessRunsTest, MetricsOnStandardErrorCountWhereStandardOutputHasNone) {
  const core::Run run = run_script("echo '{\"step\": 1, \"loss\": 0.5}' >&2");
  EXPECT_EQ(run.outcome, Outcome::kSucceeded);
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->metrics.at("loss"), 0.5);
  const core::Run both = run_to_end(
      shell_study("echo '{\"step\": 9, \"loss\": 9}' >&2; echo '{\"step\": 1, \"loss\": 0.5}'"), 1);
  ASSERT_TRUE(both.report);
  EXPECT_EQ(both.report->metrics.at("loss"), 0.5);
}

TEST_F(ProcessRunsTest, WithoutAMetricTheOutputIsExplained) {
  EXPECT_THAT(run_script("true").silence, HasSubstr("nothing was printed"));
  EXPECT_THAT(run_to_end(shell_study("echo 'loss: 0.5'"), 1).silence,
              HasSubstr("\"loss: 0.5\", is no JSON object"));
}

TEST_F(ProcessRunsTest, TheUnfinishedLineOfAProgramThatWasKilledDoesNotCount) {
  const struct {
    const char* end;
    double value;
  } cases[] = {{"exit 0", 0.25}, {"kill -KILL $$", 0.5}, {"sh -c 'kill -KILL $$'; exit $?", 0.5}};
  std::int64_t index = 0;
  for (const auto& c : cases) {
    api::Study study = shell_study(std::string("echo loss=0.5; printf loss=0.25; ") + c.end);
    study.spec.trial.metrics = api::MetricsFilter{"(\\w+)=(\\S+)"};
    const core::Run run = run_to_end(study, index++);
    ASSERT_TRUE(run.report) << c.end;
    EXPECT_EQ(run.report->metrics.at("loss"), c.value) << c.end;
  }
}

TEST_F(ProcessRunsTest, MetricsByRegularExpression) {
  api::Study study = shell_study("echo 'epoch 3: loss=0.25 accuracy=nan'");
  study.spec.trial.metrics = api::MetricsFilter{"(\\w+)=(\\S+)"};
  const core::Run run = run_to_end(study);
  ASSERT_TRUE(run.report) << run.reason;
  EXPECT_EQ(run.report->metrics.at("loss"), 0.25);
  EXPECT_TRUE(std::isnan(run.report->metrics.at("accuracy")));
}

TEST_F(ProcessRunsTest, EndsAreExplained) {
  const struct {
    const char* script;
    Outcome outcome;
    const char* said;
  } cases[] = {
      {"echo 'no such file: data.csv' >&2; exit 3", Outcome::kFailed,
       "exit code 3; its last output:\nno such file: data.csv"},
      {"kill -SEGV $$", Outcome::kFailed, "crashed with SIGSEGV (Segmentation fault)"},
      {"kill -KILL $$", Outcome::kDisrupted, "killed from outside by SIGKILL"},
      {"exit 143", Outcome::kDisrupted, "as if another process had sent it SIGTERM"},
  };
  std::int64_t index = 0;
  for (const auto& c : cases) {
    ASSERT_TRUE(runs().start(shell_study(c.script), shell_trial(index), 1).ok());
    ASSERT_TRUE(await_exit(index)) << c.script;
    EXPECT_EQ(observe(index).outcome, c.outcome) << c.script;
    EXPECT_THAT(observe(index).reason, HasSubstr(c.said));
    ++index;
  }
}

// A trial that runs `script` as each of several workers.
class SeveralWorkersTest : public ProcessRunsTest {
 protected:
  // `grace` is also the time of the others once the trial's end is decided.
  core::Run run_workers(std::int64_t workers, const std::string& script, double grace = 0.3) {
    api::Study study = shell_study(script);
    study.spec.trial.grace_period = grace;
    study.spec.trial.workers = {workers, workers};
    api::Trial trial = shell_trial();
    trial.spec.workers = workers;
    const Status started = runs().start(study, trial, 1);
    EXPECT_TRUE(started.ok()) << started.error().message;
    EXPECT_TRUE(await_exit());
    return observe();
  }
};

TEST_F(SeveralWorkersTest, EachKnowsItsPlaceAndTheFirstSpeaksForTheTrial) {
  const core::Run run = run_workers(
      3,
      "echo \"{\\\"step\\\": 1, \\\"loss\\\": $RANK}\";"
      "echo \"$RANK of $WORLD_SIZE at $MASTER_ADDR token ${#FETTLE_RENDEZVOUS_TOKEN}\" >&2",
      kPatient);
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
  EXPECT_EQ(run.workers, 3);
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->metrics.at("loss"), 0);
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(log(), HasSubstr(std::string(rank) + " of 3 at 127.0.0.1 token "));
    EXPECT_THAT(log(), HasSubstr(std::string("\"loss\": ") + rank));
  }
}

TEST_F(SeveralWorkersTest, OneThatFailsEndsTheTrialAndIsNamed) {
  const core::Run run =
      run_workers(3, "if [ $RANK = 2 ]; then echo 'no data' >&2; exit 4; fi; exec sleep 1000");
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  EXPECT_THAT(run.reason, HasSubstr("rank 2 of its workers: exit code 4"));
  EXPECT_THAT(run.reason, HasSubstr("no data"));
}

TEST_F(SeveralWorkersTest, OneThatIsKilledEndsTheTrialAndLeavesNoOrphans) {
  const core::Run run =
      run_workers(2, "echo $$ >> " + (scratch_ / "pids") +
                         "; if [ $RANK = 1 ]; then while [ $(wc -l < " + (scratch_ / "pids") +
                         ") -lt 2 ]; do sleep 0.02; done; kill -KILL $$; fi;"
                         "exec sleep 1000");
  EXPECT_EQ(run.outcome, Outcome::kDisrupted);
  EXPECT_THAT(run.reason, HasSubstr("rank 1 of its workers: killed from outside by SIGKILL"));
  const std::vector<pid_t> pids = pids_in(scratch_ / "pids");
  EXPECT_EQ(pids.size(), 2U);
  for (const pid_t pid : pids) EXPECT_FALSE(is_alive(pid));
}

TEST_F(SeveralWorkersTest, WhoIsLeftWhenTheFirstHasEndedIsEnded) {
  const core::Run run = run_workers(
      2, "echo '{\"step\": 1, \"loss\": 1}'; if [ $RANK = 1 ]; then exec sleep 1000; fi");
  EXPECT_EQ(run.outcome, Outcome::kSucceeded);
  EXPECT_THAT(run.reason, HasSubstr("it left 1 processes behind, which were killed"));
}

TEST_F(SeveralWorkersTest, SigtermReachesAll) {
  api::Study study = shell_study(
      "trap 'echo stopped $RANK; exit 143' TERM; echo began; "
      "while :; do sleep 0.05; done");
  study.spec.trial.workers = {2, 2};
  study.spec.trial.grace_period = kPatient;
  api::Trial trial = shell_trial();
  trial.spec.workers = 2;
  ASSERT_TRUE(runs().start(study, trial, 1).ok());
  ASSERT_TRUE(eventually([&] {
    const std::string text = read_file(session_->layout().log_file("s-0", 1)).ok() ? log() : "";
    return text.find("began") != text.rfind("began");
  }));
  ASSERT_TRUE(runs().stop(trial, 1).ok());
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kStopped);
  EXPECT_THAT(log(), HasSubstr("stopped 0"));
  EXPECT_THAT(log(), HasSubstr("stopped 1"));
}

TEST_F(ProcessRunsTest, CommandsThatCannotStart) {
  ASSERT_TRUE(write_file(scratch_ / "plain", "not a program").ok());
  const struct {
    Json::Array command;
    const char* directory;
    std::string said;
  } cases[] = {
      {{"no-such-program"}, "", "command not found: no-such-program"},
      {{scratch_ / "plain"}, "", "permission denied"},
      {{"/bin/true"}, "/no/such/place", "cannot start in the working directory /no/such/place"},
  };
  std::int64_t index = 0;
  for (const auto& c : cases) {
    api::Study study = shell_study("");
    Json& container = study.spec.trial.pod_template.find("spec")->find("containers")->as_array()[0];
    container.set("command", Json(c.command));
    if (*c.directory != '\0') container.set("workingDir", c.directory);
    ASSERT_TRUE(runs().start(study, shell_trial(index), 1).ok());
    ASSERT_TRUE(await_exit(index)) << c.said;
    EXPECT_EQ(observe(index).outcome, Outcome::kFailed);
    EXPECT_THAT(observe(index).reason, HasSubstr(c.said));
    ++index;
  }
}

TEST_F(ProcessRunsTest, ValuesArriveAsTheyAre) {
  const std::string odd = "'\"\n$(id) `id` ; rm -rf / {{}} $HOME $$ \\ %s";
  api::Trial trial = shell_trial();
  trial.spec.parameters = Json::object({{"odd-value", odd}, {"lr", 0.1}});
  api::Study study = shell_study("");
  Json& container = study.spec.trial.pod_template.find("spec")->find("containers")->as_array()[0];
  container.set("command", Json(Json::Array{"/usr/bin/printf", "%s|%s|%s|"}));
  container.set("args", Json(Json::Array{"$(FETTLE_PARAM_ODD_VALUE)", "$(FETTLE_PARAM_LR)",
                                         "$(COPY)$$(COPY)$(UNKNOWN)"}));
  container.set("env", Json(Json::Array{Json::object(
                           {{"name", "COPY"}, {"value", "<$(FETTLE_PARAM_ODD_VALUE)>"}})}));
  ASSERT_TRUE(runs().start(study, trial, 1).ok());
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(log(), odd + "|0.1|<" + odd + ">$(COPY)$(UNKNOWN)|");
}

TEST_F(ProcessRunsTest, StopIsGentleFirst) {
  const core::Run before = observe();
  EXPECT_EQ(before.id, 0);
  api::Study study =
      shell_study("trap 'echo got it; exit 143' TERM; echo ready; while :; do sleep 0.01; done");
  study.spec.trial.grace_period = kPatient;
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] {
    const auto text = read_file(session_->layout().log_file("s-0", 1));
    return text.ok() && text->find("ready") != std::string::npos;
  }));
  ASSERT_TRUE(runs().stop(shell_trial(), 1).ok());
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kStopped);
  EXPECT_EQ(observe().reason.substr(0, 7), "stopped");
  EXPECT_THAT(log(), HasSubstr("got it"));
}

TEST_F(ProcessRunsTest, WhatHangsIsKilledAfterTheGracePeriod) {
  const api::Study study =
      shell_study("trap '' TERM; echo '{\"loss\": 1}'; while :; do sleep 1; done");
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] { return observe().report.has_value(); }));
  ASSERT_TRUE(runs().stop(shell_trial(), 1).ok());
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kStopped);
  EXPECT_THAT(observe().reason, HasSubstr("did not end within"));
}

// Three processes that are out of reach by session, by environment, and by both: the file `pids`
// lists them.
std::string escaping(const std::string& pids) {
  return "setsid sleep 1000 & echo $! > " + pids + "; (env -i sleep 1000 & echo $! >> " + pids +
         "); (setsid env -i sleep 1000 & echo $! >> " + pids + "); ";
}

TEST_F(ProcessRunsTest, NoProcessIsLeftBehind) {
  const std::string pids = scratch_ / "pids";
  const core::Run run = run_script(escaping(pids) + "sleep 0.05; echo '{\"loss\": 1}'");
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
  EXPECT_THAT(run.reason, HasSubstr("processes behind, which were killed"));
  ASSERT_EQ(pids_in(pids).size(), 3u);
  for (const pid_t pid : pids_in(pids)) EXPECT_FALSE(is_alive(pid));
}

// 200 processes that keep replacing themselves.
constexpr const char* kForkBomb =
    "i=0; while [ $i -lt 200 ]; do (while :; do (sleep 0.02); done) & i=$((i+1)); done; "
    "echo '{\"loss\": 1}'; wait";

TEST_F(ProcessRunsTest, AForkBombIsPutOut) {
  ASSERT_TRUE(runs().start(shell_study(kForkBomb), shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] { return observe().report.has_value(); }));
  ASSERT_TRUE(runs().stop(shell_trial(), 1).ok());
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kStopped);
}

TEST_F(ProcessRunsTest, AForkBombIsPutOutAlsoWhenItsGuardIsKilled) {
  ASSERT_TRUE(runs().start(shell_study(kForkBomb), shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] { return observe().report.has_value(); }));
  const std::vector<pid_t> guards = children(runs().supervisor_pid());
  ASSERT_EQ(guards.size(), 1u);
  ::kill(guards[0], SIGKILL);
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kDisrupted);
  EXPECT_TRUE(eventually([&] { return descendants(runs().supervisor_pid()).empty(); }));
}

// Six times the limit of the log.
TEST_F(ProcessRunsTest, AHundredMegabytesOfOutputAreBoundedAndTheEndIsKept) {
  const core::Run run = run_script(
      "head -c 100000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo; "
      "echo '{\"step\": 1, \"loss\": 0.5}'; echo the end");
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
  ASSERT_TRUE(run.report);
  const std::string text = log();
  EXPECT_LE(text.size(), 17u << 20);
  EXPECT_THAT(text.substr(text.size() - 40), HasSubstr("the end"));
  EXPECT_NE(text.find("bytes are left out here]"), std::string::npos);
}

TEST_F(ProcessRunsTest, GarbageIsOnlyLog) {
  const core::Run run = run_script(
      "head -c 300000 /dev/urandom; head -c 100000 /dev/zero; echo; echo '{\"loss\": 0.5}'; exit "
      "1");
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->metrics.at("loss"), 0.5);
}

api::Study limited_study(const std::string& script, const std::string& memory) {
  api::Study study = shell_study(script);
  Json& container = study.spec.trial.pod_template.find("spec")->find("containers")->as_array()[0];
  container.set("resources", Json::object({{"limits", Json::object({{"memory", memory}})}}));
  return study;
}

TEST_F(ProcessRunsTest, TheMemoryLimitCountsTheWholeTree) {
  const core::Run run = run_to_end(limited_study(
      "x=$(head -c 60000000 /dev/zero | tr '\\0' 'x'); (y=$x; sleep 1000) & sleep 1000; echo $y",
      "32Mi"));
  EXPECT_EQ(run.outcome, Outcome::kOutOfMemory) << run.reason;
  EXPECT_THAT(run.reason, HasSubstr("more than its limit of 32 MiB (resources.limits.memory)"));
}

// The supervisor stands still in a write to the log. A pipe that no process reads, in place of the
// first piece of the log's tail, stands for the hanging disk.
TEST_F(ProcessRunsTest, TheMemoryLimitHoldsWhileTheDiskHangs) {
  const std::string& root = scratch_.path();
  const std::string until = "while [ ! -e " + root;
  const api::Study study = limited_study(
      until + "/print ]; do sleep 0.01; done; head -c 16000000 /dev/zero | tr '\\0' 'x' & " +
          until + "/grow ]; do sleep 0.01; done; echo $$ > " + root +
          "/pids; y=$(head -c 60000000 /dev/zero | tr '\\0' 'y'); sleep 1000; echo $y",
      "32Mi");
  const std::string log = session_->layout().log_file("s-0", 1);
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] { return observe().state == core::RunState::kRunning; }));
  const std::string hung = tail_piece(log, 0);
  ASSERT_EQ(::mkfifo(hung.c_str(), 0600), 0);
  ASSERT_TRUE(write_file(scratch_ / "print", "").ok());
  ASSERT_TRUE(eventually([&] { return std::filesystem::file_size(log) == TrialLog::kHeadBytes; }));
  ASSERT_TRUE(write_file(scratch_ / "grow", "").ok());
  ASSERT_TRUE(eventually([&] { return pids_in(root + "/pids").size() == 1; }));
  EXPECT_TRUE(eventually([&] { return !is_alive(pids_in(root + "/pids")[0]); }));
  EXPECT_EQ(observe().state, core::RunState::kRunning) << "the supervisor still hangs";
  const int reader = ::open(hung.c_str(), O_RDONLY | O_CLOEXEC);
  ::close(reader);  // the rest of the log is dropped
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kOutOfMemory) << observe().reason;
  EXPECT_THAT(observe().reason, HasSubstr("the log is not complete"));
}

// The kernel can take back the pages of a file that is only read.
TEST_F(ProcessRunsTest, TheMemoryLimitDoesNotCountMappedFiles) {
  const std::string data = scratch_ / "data";
  ASSERT_TRUE(write_file(data, std::string(100 << 20, 'x')).ok());
  const api::Study study = limited_study(
      "python3 -c \"import mmap, time; f = open('" + data +
          "'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); print(sum(m[i] for i in range(0, "
          "len(m), 4096)) > 0); time.sleep(0.5)\"; echo '{\"loss\": 1}'",
      "64Mi");
  const core::Run run = run_to_end(study);
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << run.reason;
  EXPECT_THAT(log(), HasSubstr("True"));
}

TEST_F(ProcessRunsTest, StartingTwiceRunsOnce) {
  const api::Study study = shell_study("echo once >> " + scratch_.path() + "/count; sleep 0.2");
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  ASSERT_TRUE(await_exit());
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  EXPECT_EQ(read_file(scratch_ / "count").value(), "once\n");
}

TEST_F(ProcessRunsTest, ARemovedRunIsForgottenButItsLogStays) {
  run_script("echo kept");
  ASSERT_TRUE(runs().remove(shell_trial(), 1).ok());
  api::Trial recorded = shell_trial();
  recorded.status.runs[0].outcome = Outcome::kFailed;
  EXPECT_TRUE(runs().observe(recorded).value().empty());
  EXPECT_THAT(log(), HasSubstr("kept"));
}

TEST_F(ProcessRunsTest, AFirstRunThatACrashLeftUnrecordedIsRemembered) {
  api::Trial trial = shell_trial();
  trial.status.runs.clear();
  trial.metadata.labels[core::kStudyUidLabel] = "study-uid";
  EXPECT_TRUE(runs().observe(trial).value().empty()) << "it was not started";
  const std::string directory = scratch_.path() + "/s/" + trial.metadata.name + "/r0";
  ASSERT_TRUE(make_directories(directory).ok());
  const api::TrialFile file =
      runtime::make_trial_file(shell_study("true"), trial, 0, scratch_.path()).value();
  ASSERT_TRUE(write_file(directory + "/trial.json", api::write_trial_file(file).dump()).ok());
  api::Trial namesake = trial;
  namesake.metadata.labels[core::kStudyUidLabel] = "a later Study";
  EXPECT_TRUE(runs().observe(namesake).value().empty());
  EXPECT_TRUE(runs().observe(trial).value().empty()) << "it was prepared, but never began";
  ASSERT_TRUE(write_file(directory + "/output.log", "").ok());
  const std::vector<core::Run> seen = runs().observe(trial).value();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].outcome, Outcome::kDisrupted);
}

TEST_F(ProcessRunsTest, ASupervisorThatIsKilledTakesItsTrialsAlong) {
  const std::string pids = scratch_ / "pids";
  const std::string script = escaping(pids) + "sleep 0.05; echo $$ >> " + pids + "; sleep 1000";
  ASSERT_TRUE(runs().start(shell_study(script), shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] { return pids_in(pids).size() == 4; }));
  ASSERT_EQ(::kill(runs().supervisor_pid(), SIGKILL), 0);
  ASSERT_TRUE(await_exit());
  EXPECT_EQ(observe().outcome, Outcome::kDisrupted);
  for (const pid_t pid : pids_in(pids)) {
    EXPECT_TRUE(eventually([&] { return !is_alive(pid); })) << pid;
  }
  const Status again = runs().start(shell_study("true"), shell_trial(1), 1);
  EXPECT_THAT(again.error().message, HasSubstr("killed by signal 9"));
}

TEST_F(ProcessRunsTest, AnUnreadableEventEndsTheRuns) {
  const std::string fake = scratch_ / "supervisor";
  ASSERT_TRUE(write_file(fake,
                         "#!/bin/sh\nread hello <&3\necho '{\"event\": \"ready\"}' >&3\n"
                         "read start <&3\necho '{\"event\": \"nonsense\"}' >&3\ncat <&3\n")
                  .ok());
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  session_.reset();
  SessionOptions options = session_options(scratch_.path());
  options.executable = fake;
  auto opened = Session::open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  session_ = std::move(opened).value();
  ASSERT_TRUE(runs().start(shell_study("true"), shell_trial(), 1).ok());
  ASSERT_TRUE(eventually([&] { return observe().state == core::RunState::kExited; }));
  EXPECT_EQ(observe().outcome, Outcome::kDisrupted);
  EXPECT_THAT(observe().reason, HasSubstr("cannot be read"));
  EXPECT_NE(runs().failure(), "");
}

TEST_F(ProcessRunsTest, SixHundredShortTrials) {
  const api::Study study = shell_study("echo '{\"loss\": 0.5}'");
  std::atomic<int> changes = 0;
  runs().watch([&](const std::string&) { ++changes; });
  std::int64_t started = 0;
  std::int64_t ended = 0;
  ASSERT_TRUE(eventually([&] {
    for (std::int64_t i = ended; i < started; ++i) {
      if (observe(ended).state != core::RunState::kExited) break;
      ++ended;
    }
    for (; started < 600 && started < ended + 30; ++started) {
      EXPECT_TRUE(runs().start(study, shell_trial(started), 1).ok());
    }
    return ended == 600;
  }));
  for (std::int64_t i = 0; i < 600; ++i) {
    ASSERT_EQ(observe(i).outcome, Outcome::kSucceeded) << observe(i).reason;
    ASSERT_TRUE(observe(i).report) << i;
  }
  EXPECT_GE(changes, 600);
}

}  // namespace
}  // namespace fettle::local
