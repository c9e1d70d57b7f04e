#include "base/machine/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

using testing::ElementsAre;

// One entry of /proc/cpuinfo.
std::string entry(int socket, int core) {
  return "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A CPU: the 2nd\n"
         "physical id\t: " +
         std::to_string(socket) + "\ncore id\t\t: " + std::to_string(core) +
         "\nflags\t\t: fpu avx2 fma rdtscp\n\n";
}

TEST(Cpu, CountsThreadsCoresAndSockets) {
  std::string text;
  for (int thread = 0; thread < 8; ++thread) {
    text += entry(thread / 4, thread / 2 % 2);
  }
  const Cpu cpu = parse_cpu(text);
  EXPECT_EQ(cpu.model, "A CPU: the 2nd");
  EXPECT_EQ(cpu.logical, 8);
  EXPECT_EQ(cpu.cores, 4);
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_THAT(cpu.features, ElementsAre("avx2", "fma"));
}

TEST(Cpu, ATextThatSaysNothingIsNoError) {
  for (const char* text : {"", "\n", "processor\n", "cpu MHz : fast\nflags :\n", ":::"}) {
    const Cpu cpu = parse_cpu(text);
    EXPECT_EQ(cpu.cores, 0) << text;
    EXPECT_TRUE(cpu.features.empty()) << text;
  }
}

}  // namespace
}  // namespace fettle::machine
