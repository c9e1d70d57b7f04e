// The CPU of this machine, from the kernel's files.
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
  std::vector<std::string> features;  // its members of kCpuFeatures, in that order
};

// Parses /proc/cpuinfo of an x86-64 machine; missing values keep their defaults.
Cpu parse_cpu(std::string_view cpuinfo);

}  // namespace fettle::machine
