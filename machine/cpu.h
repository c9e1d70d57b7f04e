// The CPU of this machine and its peak arithmetic rate, from what the kernel prints.
// Pure functions and values; usable from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fettle::machine {

struct Cpu {
  std::string model;  // "AMD EPYC 9654 96-Core Processor"
  int logical = 0;    // CPUs, as the kernel counts them
  int cores = 0;      // physical ones: hyper-threads share one core's arithmetic
  int sockets = 0;
  double hertz = 0;                   // the highest clock that is known; 0: none is
  double cache = 0;                   // bytes of the last level that a core reaches; 0: not known
  bool narrow_avx512 = false;         // AVX-512 by two passes of 256 bits (AMD before family 26)
  std::vector<std::string> features;  // those of kCpuFeatures that it has, in this order
  bool has(std::string_view feature) const;
};

// Reads /proc/cpuinfo of an x86-64 machine; what it does not say stays as it is above.
Cpu parse_cpu(std::string_view cpuinfo);

// Peak operations per second of `cores` cores, where a multiply-add counts as two; 0: the clock is
// not known. `bits16`: with bf16 instructions where it has them.
double peak_flops(const Cpu& cpu, double cores, bool bits16);

// "32 FLOP a cycle": a factor of peak_flops, for people.
double flops_per_cycle(const Cpu& cpu, bool bits16);

}  // namespace fettle::machine
