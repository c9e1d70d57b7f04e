#include "base/machine/oom.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/file.h"

namespace fettle::machine {
namespace {

TEST(OomKills, AreCountedByTheKernel) {
  std::string root = (std::filesystem::temp_directory_path() / "fettle-oom-XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  EXPECT_EQ(oom_kills(root), 0) << "no such file";
  ASSERT_TRUE(make_directories(root + "/proc").ok());
  ASSERT_TRUE(write_file(root + "/proc/vmstat", "pgfault 7\ndrop_oom_kill 9\npgmigrate 1\n").ok());
  EXPECT_EQ(oom_kills(root), 0) << "an old kernel";
  ASSERT_TRUE(write_file(root + "/proc/vmstat", "pgfault 7\noom_kill 3\npgmigrate 1\n").ok());
  EXPECT_EQ(oom_kills(root), 3);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace fettle::machine
