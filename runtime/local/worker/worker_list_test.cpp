// The list of workers, from one process to another.
#include "runtime/local/worker/worker_list.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/local/store/study_lock.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

const std::vector<WorkerView> kWorkers = {{1, 118, 85 << 20, {"digits-3-r0"}}, {2, 118, 0, {}}};

// The lock is this process's own, and says nothing to itself.
bool another_process_reads(const Layout& layout, const std::vector<WorkerView>& expected) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(read_workers(layout) == expected ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

TEST(WorkerList, CountsTrialsAndMemory) {
  EXPECT_EQ(describe({}), "");
  EXPECT_EQ(describe(kWorkers), "2 warm: 236 trials trained, 1 in training, 85 MiB");
}

TEST(WorkerList, IsThereWhileARunnerHasTheStudy) {
  const Scratch scratch;
  const Layout layout = make_layout(scratch.path(), "digits");
  ASSERT_TRUE(write_workers(layout, kWorkers).ok());
  EXPECT_TRUE(read_workers(layout).empty()) << "nobody runs it";
  const auto lock = StudyLock::acquire(layout.lock(), {});
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(another_process_reads(layout, kWorkers));
  ASSERT_TRUE(write_file(layout.workers_file(), "{").ok());
  EXPECT_TRUE(another_process_reads(layout, {}));
}

}  // namespace
}  // namespace fettle::local
