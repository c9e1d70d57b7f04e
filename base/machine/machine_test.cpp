// Readings of this machine: their values are unknown here, so the test only checks that they are
// plausible.
#include "base/machine/machine.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace fettle::machine {
namespace {

TEST(Machine, MemoryIsReadFromTheKernelsText) {
  const MemoryInfo info = parse_memory(
      "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   20000000 kB\nBuffers: 3 kB\n");
  EXPECT_EQ(info.total, 24684084LL * 1024);
  EXPECT_EQ(info.available, 20000000LL * 1024);
  EXPECT_EQ(parse_memory("").total, 0);
  EXPECT_EQ(parse_memory("HugeMemTotal: 5 kB\nMemTotal: much\n").total, 0);
  EXPECT_EQ(parse_memory("MemTotal:").total, 0);
}

TEST(Machine, IsInspected) {
  const std::string below = std::filesystem::temp_directory_path().string() + "/not/there/yet";
  const Machine machine = inspect_machine(below);
  EXPECT_GT(machine.cpu.logical, 0);
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory.total, 0);
  EXPECT_LE(machine.usable_memory, machine.memory.total + (1 << 20));
  EXPECT_GT(machine.disk.total, machine.disk.free);
  EXPECT_EQ(machine.disk.directory, std::filesystem::temp_directory_path().string());
  EXPECT_TRUE(machine.disk.writable);
  EXPECT_FALSE(inspect_machine("/proc").disk.writable);
}

}  // namespace
}  // namespace fettle::machine
