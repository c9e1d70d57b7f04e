// The CPU of this machine and its peak arithmetic rate, from the kernel's files.
// Pure functions and values; usable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fettle::machine {

struct Cpu {
  std::string model;  // "AMD EPYC 9654 96-Core Processor"
  int logical = 0;    // CPUs, as the kernel counts them
  int cores = 0;      // physical cores: hyper-threads share their arithmetic
  int sockets = 0;
  double hertz = 0;                   // the highest known clock; 0: unknown
  double cache = 0;                   // bytes of the last level that a core reaches; 0: unknown
  bool narrow_avx512 = false;         // AVX-512 by two passes of 256 bits (AMD before family 26)
  std::vector<std::string> features;  // its members of kCpuFeatures, in that order
  bool has(std::string_view feature) const;
};

// Parses /proc/cpuinfo of an x86-64 machine; missing values keep their defaults.
Cpu parse_cpu(std::string_view cpuinfo);

// Peak operations per second of `cores` cores, counting a multiply-add as two; 0: the clock is
// unknown. `bits16`: uses bf16 instructions if available.
double peak_flops(const Cpu& cpu, double cores, bool bits16);

// "32 FLOP a cycle": a factor of peak_flops, for people.
double flops_per_cycle(const Cpu& cpu, bool bits16);

}  // namespace fettle::machine
