// How trials are stopped, with the scripts that people write: behind shells, launchers and pipes,
// with helper processes, by us and by others. Their programs take a while to save.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "runtime/local/process/process_tree.h"
#include "runtime/local/run/process_runs.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

using api::Outcome;
using testing::HasSubstr;

// Notes its signals and its end in the file `notes`. SIGTERM while it saves would be noted twice.
constexpr const char* kSaver = R"(import os, signal, sys, time
def note(text):
    with open(os.path.dirname(sys.argv[0]) + "/notes", "a") as file:
        file.write(text + "\n")
def save(*_):
    note("told")
    time.sleep(0.4)
    print("saving", flush=True)
    note("saved")
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
note("began")
while True:
    time.sleep(0.05)
)";

// A launcher like subprocess.run(), without signal handling.
constexpr const char* kLauncher = R"(import subprocess, sys
sys.exit(subprocess.run([sys.executable] + sys.argv[1:]).returncode)
)";

// A launcher that passes SIGTERM on.
constexpr const char* kForwarder = R"(import signal, subprocess, sys
child = subprocess.Popen([sys.executable] + sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
sys.exit(child.wait())
)";

// Like a data loader: its work is lost if one of its workers ends while it saves.
constexpr const char* kLoader = R"(import multiprocessing, os, signal, sys, time
def note(text):
    with open(os.path.dirname(sys.argv[0]) + "/notes", "a") as file:
        file.write(text + "\n")
def work():
    while True:
        time.sleep(0.05)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    def save(*_):
        note("told")
        time.sleep(0.4)
        note("saved" if all(worker.is_alive() for worker in workers) else "a worker was killed")
        for worker in workers:
            worker.kill()
        sys.exit(143)
    signal.signal(signal.SIGTERM, save)
    note("began")
    while True:
        time.sleep(0.05)
)";

struct Form {
  const char* name;
  const char* script;  // @ stands for the directory of the programs
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

const Form kForms[] = {
    {"Alone", "exec python3 @/saver.py"},
    {"BetweenCommands", "true; python3 @/saver.py; true"},
    {"ShellInShell", "sh -c 'sh -c \"python3 @/saver.py; true\"; true'; true"},
    {"Env", "env A=b python3 @/saver.py; true"},
    {"Time", "bash -c 'time python3 @/saver.py; true'; true"},
    {"Launcher", "python3 @/launcher.py @/saver.py"},
    {"LauncherBehindAShell", "python3 @/launcher.py @/saver.py; true"},
    {"LauncherThatHandsItDown", "python3 @/forwarder.py @/saver.py; true"},
    {"TrapInFront", "trap 'echo bye' TERM; python3 @/saver.py; true"},
    {"TrapThatExits", "trap 'exit 143' TERM; python3 @/saver.py"},
    {"TrapThatHandsItDown",
     "trap 'kill -TERM $child; wait' TERM; python3 @/saver.py & child=$!; wait"},
    {"TrapThatSaves",
     "trap 'echo told >> @/notes; sleep 0.5 && echo saved >> @/notes; exit 143' TERM;"
     "echo began >> @/notes; while :; do sleep 0.05; done"},
    {"ShellThatIgnoresIt", "trap '' TERM; python3 @/saver.py; true"},
    {"Pipe", "python3 @/saver.py 2>&1 | tee @/log"},
    {"PipeBehindATrap", "trap 'echo bye' TERM; python3 @/saver.py 2>&1 | tee @/log; true"},
    {"Make", "make --no-print-directory -f @/Makefile"},
    {"DataLoader", "python3 @/loader.py"},
    {"DataLoaderBehindAShell", "python3 @/loader.py; true"},
};

class EndingTest : public testing::Test {
 protected:
  EndingTest() {
    EXPECT_TRUE(write_file(scratch_ / "saver.py", kSaver).ok());
    EXPECT_TRUE(write_file(scratch_ / "launcher.py", kLauncher).ok());
    EXPECT_TRUE(write_file(scratch_ / "forwarder.py", kForwarder).ok());
    EXPECT_TRUE(write_file(scratch_ / "loader.py", kLoader).ok());
    EXPECT_TRUE(
        write_file(scratch_ / "Makefile", "all:\n\tpython3 " + (scratch_ / "saver.py") + "; true\n")
            .ok());
    auto opened = open_session(scratch_.path());
    EXPECT_TRUE(opened.ok());
    session_ = std::move(opened).value();
  }

  ProcessRuns& runs() { return session_->runs(); }

  // Returns when the program runs.
  void start(std::string script, double grace = 60) {
    for (auto at = script.find('@'); at != std::string::npos; at = script.find('@')) {
      script.replace(at, 1, scratch_.path());
    }
    api::Study study = shell_study(script);
    study.spec.trial.grace_period = grace;
    ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
    ASSERT_TRUE(eventually([&] { return notes() == "began\n"; })) << notes();
  }

  std::string notes() {
    const auto text = read_file(scratch_ / "notes");
    return text.ok() ? *text : "";
  }

  core::Run observe() {
    const auto seen = runs().observe(shell_trial());
    return seen.ok() && !seen->empty() ? seen->front() : core::Run{};
  }

  core::Run end() {
    EXPECT_TRUE(eventually([&] { return observe().state == core::RunState::kExited; }));
    return observe();
  }

  pid_t guard() {
    const std::vector<pid_t> guards = children(runs().supervisor_pid());
    return guards.size() == 1 ? guards[0] : 0;
  }

  Scratch scratch_;
  std::unique_ptr<Session> session_;
};

class FormTest : public EndingTest, public testing::WithParamInterface<Form> {};

TEST_P(FormTest, IsToldOnceAndHasTimeToSave) {
  start(GetParam().script);
  ASSERT_TRUE(runs().stop(shell_trial(), 1).ok());
  const core::Run run = end();
  EXPECT_EQ(notes(), "began\ntold\nsaved\n") << run.reason;
  EXPECT_EQ(run.outcome, Outcome::kStopped) << run.reason;
  EXPECT_EQ(run.reason.find("killed"), std::string::npos) << run.reason;
}

// Forms whose program does not depend on processes that get SIGTERM themselves.
std::vector<Form> independent_forms() {
  std::vector<Form> forms;
  for (const Form& form : kForms) {
    const std::string name = form.name;
    if (name.rfind("Pipe", 0) != 0 && name.rfind("DataLoader", 0) != 0) forms.push_back(form);
  }
  return forms;
}

class SigtermToAllTest : public FormTest {};

// As systemctl stop, scancel and shutdown send it.
TEST_P(SigtermToAllTest, LeavesTimeToSave) {
  start(GetParam().script);
  std::vector<pid_t> all = descendants(runs().supervisor_pid());
  all.push_back(runs().supervisor_pid());
  std::ranges::sort(all);
  for (const pid_t pid : all) ::kill(pid, SIGTERM);
  auto done = std::async(std::launch::async, [&] { session_->shutdown(); });
  const core::Run run = end();
  EXPECT_THAT(notes(), HasSubstr("told\n")) << run.reason;
  EXPECT_THAT(notes(), HasSubstr("saved\n")) << run.reason;
  EXPECT_EQ(run.outcome, Outcome::kDisrupted) << run.reason;
  done.get();
}

std::string name_of(const testing::TestParamInfo<Form>& form) { return form.param.name; }

INSTANTIATE_TEST_SUITE_P(As, FormTest, testing::ValuesIn(kForms), name_of);
INSTANTIATE_TEST_SUITE_P(As, SigtermToAllTest, testing::ValuesIn(independent_forms()), name_of);

TEST_F(EndingTest, SigtermToAllProcessesButTheRunnersLeavesTimeToSave) {
  start("python3 @/saver.py; true");
  for (const pid_t pid : descendants(runs().supervisor_pid())) ::kill(pid, SIGTERM);
  const core::Run run = end();
  EXPECT_EQ(notes(), "began\ntold\nsaved\n") << "once, also if the guard heard it, too";
  EXPECT_EQ(run.outcome, Outcome::kDisrupted);
  EXPECT_THAT(run.reason, HasSubstr("SIGTERM"));
}

TEST_F(EndingTest, SigtermToTheGuardAloneIsHandedDown) {
  start("python3 @/saver.py; true", 6);
  ASSERT_GT(guard(), 0);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) ::kill(guard(), signal);
  end();
  EXPECT_EQ(notes(), "began\ntold\nsaved\n");
}

TEST_F(EndingTest, WhatDoesNotEndIsKilledAfterTheGracePeriodAndSaidSo) {
  start(
      "python3 -c 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
      "open(\"@/notes\", \"w\").write(\"began\\n\"); time.sleep(1000)'; true",
      2);
  ASSERT_TRUE(runs().stop(shell_trial(), 1).ok());
  const core::Run run = end();
  EXPECT_EQ(run.outcome, Outcome::kStopped);
  EXPECT_THAT(run.reason,
              HasSubstr("1 of its processes did not end within 2s of SIGTERM and was killed"));
}

TEST_F(EndingTest, ThoseWhoWatchOverATrialAreCalledWhatTheyAre) {
  start("python3 @/saver.py");
  const auto name = [](pid_t pid) {
    return read_file("/proc/" + std::to_string(pid) + "/comm").value();
  };
  EXPECT_EQ(name(runs().supervisor_pid()), "fettle-supervis\n");
  EXPECT_EQ(name(guard()), "fettle-guard\n");
}

TEST_F(EndingTest, AProgramThatIsStillBeingWrittenIsWaitedFor) {
  const std::string program = scratch_ / "program";
  ASSERT_TRUE(write_file(program, "#!/bin/sh\necho '{\"loss\": 1}'\n").ok());
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const int writer = ::open(program.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  api::Study study = shell_study("");
  Json& container = study.spec.trial.pod_template.find("spec")->find("containers")->as_array()[0];
  container.set("command", Json(Json::Array{program}));
  ASSERT_TRUE(runs().start(study, shell_trial(), 1).ok());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_NE(observe().state, core::RunState::kExited) << observe().reason;
  ::close(writer);
  EXPECT_EQ(end().outcome, Outcome::kSucceeded) << observe().reason;
}

}  // namespace
}  // namespace fettle::local
