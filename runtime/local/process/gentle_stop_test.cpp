// The order of SIGTERM, as a table, and the facts about processes that it rests on.
#include "runtime/local/process/gentle_stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "runtime/local/process/proc_table.h"
#include "runtime/local/process/process_tree.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using enum Process::OnTerm;

constexpr pid_t kGuard = 1;
constexpr std::uint64_t kPipe = 77;

Process process(pid_t pid, pid_t parent, Process::OnTerm on_term) {
  Process made;
  made.id = {pid, 0};
  made.parent = parent;
  made.on_term = on_term;
  return made;
}

Process shell(pid_t pid, pid_t parent, Process::OnTerm on_term) {
  Process made = process(pid, parent, on_term);
  made.is_shell = true;
  return made;
}

Process background(Process made) {
  made.in_background = true;
  return made;
}

Process writer(Process made) {
  made.outputs = {5, kPipe};
  return made;
}

Process reader(Process made) {
  made.input = kPipe;
  return made;
}

TEST(NextToSignal, ByWhatThereIs) {
  const struct {
    const char* what;
    std::vector<Process> tree;
    std::vector<pid_t> signalled;
    std::vector<pid_t> next;
  } rows[] = {
      {"a program", {process(2, kGuard, kCatches)}, {}, {2}},
      {"signalled already", {process(2, kGuard, kCatches)}, {2}, {}},
      {"workers belong to their program",
       {process(2, kGuard, kCatches), process(3, 2, kDies)},
       {2},
       {}},
      {"workers whose program has ended", {process(3, kGuard, kDies)}, {}, {3}},
      {"a shell that dies of it", {shell(2, kGuard, kDies), process(3, 2, kCatches)}, {}, {2}},
      {"a shell with a trap",
       {shell(2, kGuard, kCatches), process(3, 2, kCatches), process(4, 3, kDies)},
       {},
       {2, 3}},
      {"a shell with a trap and a job",
       {shell(2, kGuard, kCatches), background(process(3, 2, kCatches))},
       {},
       {2}},
      {"shells in shells",
       {shell(2, kGuard, kIgnores), shell(3, 2, kIgnores), process(4, 3, kCatches)},
       {},
       {2, 3, 4}},
      {"what the trap of a shell runs",
       {shell(2, kGuard, kCatches), process(4, 2, kDies)},
       {2},
       {}},
      {"the next command of a shell that ignores it",
       {shell(2, kGuard, kIgnores), process(4, 2, kDies)},
       {2},
       {4}},
      {"a program that ignores it keeps its workers",
       {process(2, kGuard, kIgnores), process(3, 2, kDies)},
       {},
       {2}},
      {"tee", {writer(process(2, kGuard, kCatches)), reader(process(3, kGuard, kDies))}, {}, {2}},
      {"tee while the program saves",
       {writer(process(2, kGuard, kCatches)), reader(process(3, kGuard, kDies))},
       {2},
       {}},
      {"a reader whose writer has ended", {reader(process(3, kGuard, kCatches))}, {}, {3}},
      {"a reader of one that will not end",
       {writer(process(2, kGuard, kIgnores)), reader(process(3, kGuard, kCatches))},
       {},
       {2, 3}},
      {"two that read from each other",
       {writer(reader(process(2, kGuard, kCatches))), writer(reader(process(3, kGuard, kDies)))},
       {},
       {2, 3}},
  };
  for (const auto& row : rows) {
    std::set<ProcessId> signalled;
    for (const pid_t pid : row.signalled) signalled.insert({pid, 0});
    std::vector<pid_t> next;
    for (const ProcessId& id : next_to_signal(kGuard, row.tree, signalled, {}).now) {
      next.push_back(id.first);
    }
    EXPECT_EQ(next, row.next) << row.what;
  }
}

TEST(NextToSignal, AReaderBehindATrapComesWhenItsWriterHasEnded) {
  const Process trap = shell(2, kGuard, kCatches);
  const Process program = reader(process(4, 2, kCatches));
  const SignalPlan first =
      next_to_signal(kGuard, {trap, writer(process(3, 2, kDies)), program}, {}, {});
  EXPECT_THAT(first.now, testing::ElementsAre(ProcessId(2, 0), ProcessId(3, 0)));
  EXPECT_THAT(first.later, testing::ElementsAre(ProcessId(4, 0)));
  const SignalPlan then =
      next_to_signal(kGuard, {trap, program}, {{2, 0}, {3, 0}}, {first.later[0]});
  EXPECT_THAT(then.now, testing::ElementsAre(ProcessId(4, 0)));
}

// A process in a directory that looks like /proc.
void write_process(const std::string& proc, pid_t pid, pid_t parent, const std::string& status) {
  const std::string directory = proc + "/" + std::to_string(pid);
  ASSERT_TRUE(make_directories(directory).ok());
  ASSERT_TRUE(write_file(directory + "/stat", std::to_string(pid) + " (a) (b 7) S " +
                                                  std::to_string(parent) +
                                                  " 1 1 34816 -1 4194560 1 0 0 0 1 2 3 4 20 0 1 0 "
                                                  "123456 7 8 18446744073709551615")
                  .ok());
  ASSERT_TRUE(write_file(directory + "/status", "Name:\ta\n" + status).ok());
}

TEST(ProcTable, ReadsWhatAProcessDoesOnSigterm) {
  const Scratch scratch;
  const struct {
    const char* status;
    Process::OnTerm on_term;
    bool in_background;
  } rows[] = {
      {"SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n", kDies, false},
      {"SigIgn:\t0000000000004000\nSigCgt:\t0000000000000000\n", kIgnores, false},
      {"SigIgn:\t0000000000001000\nSigCgt:\t0000000000004002\n", kCatches, false},
      {"SigIgn:\t0000000000000006\nSigCgt:\t0000000180004000\n", kCatches, true},
      {"", kDies, false},
  };
  for (const auto& row : rows) {
    write_process(scratch.path(), 42, 7, row.status);
    const auto found = inspect(42, scratch.path());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->id, ProcessId(42, 123456));
    EXPECT_EQ(found->parent, 7);
    EXPECT_EQ(found->on_term, row.on_term) << row.status;
    EXPECT_EQ(found->in_background, row.in_background) << row.status;
  }
  EXPECT_EQ(terminal_of(42, scratch.path()), 34816);
  EXPECT_FALSE(inspect(43, scratch.path()));
}

TEST(ProcTable, SaysWhatAKernelDoesNotShow) {
  const Scratch scratch;
  EXPECT_EQ(trouble_with_proc(), "");
  EXPECT_THAT(trouble_with_proc(scratch.path()), HasSubstr("shows no processes"));
  write_process(scratch.path(), ::getpid(), 1, "");
  EXPECT_THAT(trouble_with_proc(scratch.path()), HasSubstr("does not list the children"));
}

TEST(ProcTable, WithoutListsTheDescendantsAreFoundAllTheSame) {
  const Scratch scratch;
  for (const auto& [pid, parent] : {std::pair(10, 1), {11, 10}, {12, 10}, {13, 12}, {14, 1}}) {
    write_process(scratch.path(), pid, parent, "");
  }
  EXPECT_THAT(descendants_among(10, children_by_scan(scratch.path())),
              testing::UnorderedElementsAre(11, 12, 13));
  EXPECT_THAT(descendants_among(14, children_by_scan(scratch.path())), IsEmpty());

  // The same by the kernel's lists of children.
  pid_t child = 0;
  std::string words[] = {"sh", "-c", "sleep 100 & sleep 100"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  ASSERT_EQ(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, ::environ), 0);
  EXPECT_TRUE(eventually([&] { return descendants(child).size() == 2; }));
  EXPECT_THAT(descendants_among(child, children_by_scan()),
              testing::UnorderedElementsAreArray(descendants(child)));
  EXPECT_TRUE(inspect(child)->is_shell);
  signal_tree(child, SIGKILL);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// When a shell dies, its commands get another parent, possibly between the readings of the children
// of both.
TEST(ProcessTree, SeesOrphansThatGetANewParentMeanwhile) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::string words[] = {"sh", "-c", "sleep 100 & sleep 100"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  for (int round = 0; round < 200; ++round) {
    pid_t shell = 0;
    ASSERT_EQ(::posix_spawn(&shell, "/bin/sh", nullptr, nullptr, arguments, ::environ), 0);
    ASSERT_TRUE(eventually([&] { return descendants(shell).size() == 2; }));
    const std::vector<pid_t> commands = descendants(shell);
    std::jthread killer([shell] { ::kill(shell, SIGKILL); });
    while (::waitpid(shell, nullptr, WNOHANG) == 0) {
      EXPECT_THAT(settled_descendants(::getpid()), testing::IsSupersetOf(commands));
    }
    for (const pid_t command : commands) {
      ::kill(command, SIGKILL);
      ::waitpid(command, nullptr, 0);
    }
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace fettle::local
