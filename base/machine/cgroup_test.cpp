// The limits of containers, from directories with the kernel's layout.
#include "base/machine/cgroup.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/file.h"

namespace fettle::machine {
namespace {

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    put("/proc/self/cgroup", "0::/pods/one\n");
  }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    EXPECT_TRUE(write_file(root_ + path, text).ok());
  }

  std::string root_;
};

TEST_F(CgroupTest, NoFilesNoLimits) {
  EXPECT_FALSE(cgroup_limits(root_).memory);
  EXPECT_FALSE(cgroup_limits(root_).cores);
}

TEST_F(CgroupTest, TheTightestGroupOnTheWayUpCounts) {
  put("/sys/fs/cgroup/pods/one/memory.max", "max\n");
  put("/sys/fs/cgroup/pods/one/cpu.max", "250000 100000\n");
  put("/sys/fs/cgroup/pods/memory.max", "1048576\n");
  put("/sys/fs/cgroup/pods/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_limits(root_).memory, 1048576);
  EXPECT_EQ(cgroup_limits(root_).cores, 2.5);
}

TEST_F(CgroupTest, InANamespaceOfItsOwnTheGroupIsTheRoot) {
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.max", "4096\n");
  EXPECT_EQ(cgroup_limits(root_).memory, 4096);
}

}  // namespace
}  // namespace fettle::machine
