// Readings and measurements of this machine: their values are unknown here, so the test only checks
// that they are plausible.
#include "machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/file.h"

namespace fettle::machine {
namespace {

TEST(Links, ComeFromTheKernelWithoutTheLoopback) {
  std::string root = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const auto put = [&](const std::string& file, const std::string& text) {
    const std::filesystem::path path(root + "/sys/class/net/" + file);
    std::filesystem::create_directories(path.parent_path());
    EXPECT_TRUE(write_file(path.string(), text).ok());
  };
  put("lo/operstate", "unknown\n");
  put("eth1/operstate", "down\n");
  put("eth0/operstate", "up\n");
  put("eth0/speed", "25000\n");
  const std::vector<Link> links = find_links(root);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0].name, "eth0");
  EXPECT_EQ(links[0].state, "up");
  EXPECT_EQ(links[0].speed, 3.125e9);
  EXPECT_EQ(links[1].speed, std::nullopt);
  std::filesystem::remove_all(root);
}

TEST(Machine, IsLookedAt) {
  const std::string below = std::filesystem::temp_directory_path().string() + "/not/there/yet";
  const Machine machine = inspect_machine(below);
  EXPECT_GT(machine.cpu.logical, 0);
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory.total, 0);
  EXPECT_LE(machine.usable_memory, machine.memory.total + (1 << 20));
  EXPECT_GT(machine.memory_rate, 1e8);
  EXPECT_GT(machine.loopback, 1e7);
  EXPECT_GT(machine.disk.total, machine.disk.free);
  ASSERT_TRUE(machine.disk.rate) << machine.disk.why_not;
  EXPECT_GT(machine.disk.rate->write, 0);
  EXPECT_GT(machine.disk.rate->read, 0);
}

TEST(Machine, ADiskThatCannotBeWrittenIsSaid) {
  const auto rate = measure_disk("/proc");
  ASSERT_FALSE(rate.ok());
  EXPECT_THAT(rate.error().message, testing::HasSubstr("cannot write to /proc"));
}

}  // namespace
}  // namespace fettle::machine
