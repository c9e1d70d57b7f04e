#include "machine/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

using testing::ElementsAre;

// One entry of /proc/cpuinfo.
std::string entry(const std::string& vendor, int family, int socket, int core, double mhz,
                  const std::string& flags) {
  return "processor\t: 0\nvendor_id\t: " + vendor + "\ncpu family\t: " + std::to_string(family) +
         "\nmodel name\t: A CPU: the 2nd\ncpu MHz\t\t: " + std::to_string(mhz) +
         "\nphysical id\t: " + std::to_string(socket) + "\ncore id\t\t: " + std::to_string(core) +
         "\nflags\t\t: fpu " + flags + " rdtscp\n\n";
}

TEST(Cpu, CountsThreadsCoresAndSockets) {
  std::string text;
  for (int thread = 0; thread < 8; ++thread) {
    text += entry("GenuineIntel", 6, thread / 4, thread / 2 % 2, 2000 + thread, "avx2 fma");
  }
  const Cpu cpu = parse_cpu(text);
  EXPECT_EQ(cpu.model, "A CPU: the 2nd");
  EXPECT_EQ(cpu.logical, 8);
  EXPECT_EQ(cpu.cores, 4);
  EXPECT_EQ(cpu.sockets, 2);
  EXPECT_EQ(cpu.hertz, 2007e6);
  EXPECT_THAT(cpu.features, ElementsAre("avx2", "fma"));
}

TEST(Cpu, ATextThatSaysNothingIsNoError) {
  for (const char* text : {"", "\n", "processor\n", "cpu MHz : fast\nflags :\n", ":::"}) {
    const Cpu cpu = parse_cpu(text);
    EXPECT_EQ(cpu.cores, 0) << text;
    EXPECT_EQ(peak_flops(cpu, 8, false), 0) << text;
  }
}

TEST(Cpu, OperationsACycleFollowFromTheInstructions) {
  const struct {
    const char* vendor;
    int family;
    const char* flags;
    double fp32, bits16;
  } cases[] = {
      {"GenuineIntel", 6, "sse4_2", 8, 8},
      {"GenuineIntel", 6, "avx2 fma", 32, 32},
      {"GenuineIntel", 6, "avx2 fma avx512f", 64, 64},
      {"GenuineIntel", 6, "avx2 fma avx512f avx512_bf16", 64, 128},
      {"GenuineIntel", 6, "avx2 fma avx512f avx512_bf16 amx_tile amx_bf16", 64, 2048},
      {"AuthenticAMD", 25, "avx2 fma avx512f avx512_bf16", 32, 64},
      {"AuthenticAMD", 26, "avx2 fma avx512f avx512_bf16", 64, 128},
  };
  for (const auto& c : cases) {
    const Cpu cpu = parse_cpu(entry(c.vendor, c.family, 0, 0, 2500, c.flags));
    EXPECT_EQ(flops_per_cycle(cpu, false), c.fp32) << c.flags;
    EXPECT_EQ(flops_per_cycle(cpu, true), c.bits16) << c.flags;
    EXPECT_EQ(peak_flops(cpu, 1, false), 2.5e9 * c.fp32) << c.flags;
    EXPECT_EQ(peak_flops(cpu, 0.5, false), 1.25e9 * c.fp32) << "a container's quota";
    EXPECT_EQ(peak_flops(cpu, 4, false), 2.5e9 * c.fp32) << "threads of one core share it";
  }
}

}  // namespace
}  // namespace fettle::machine
