// The kernels whose launch configuration is measured for a GPU instead of being fixed
// (`fettle-trainer --tune-kernels`), their defaults, and what values they take.
//
// Invariant: no configuration changes a bit of a kernel's result, so none changes a training. That
// is why kernels whose block adds up what its threads have are not here (decision 23).
// Known to the program and to libfettle_cuda.so. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fettle::kernels::cuda {

// A block of so many threads leaves each 128 registers, and no kernel that is listed takes more
// than 64 (machine_code.txt): a GPU takes every configuration.
inline constexpr unsigned kMostThreads = 512;
inline constexpr unsigned kMostBlocksPerMultiprocessor = 32;  // that any GPU so far holds at once

struct LaunchConfig {
  unsigned threads = 256;  // of a block: a multiple of 32
  // Of kernels that go round: so many blocks at most share the work. 0: there are as many blocks as
  // the work needs.
  unsigned blocks_per_multiprocessor = 0;
  bool operator==(const LaunchConfig&) const = default;
};

struct TunableKernel {
  std::string_view name;  // folder/kernel, or folder/operation where kernels share it
  LaunchConfig usual;
  bool goes_round() const { return usual.blocks_per_multiprocessor != 0; }
};

std::span<const TunableKernel> tunable_kernels();

// Errors: there is no such kernel; with those that there are.
Result<TunableKernel> find_tunable(std::string_view name);

// Errors: what the kernel does not take, and what it takes.
Status check_config(const TunableKernel& kernel, const LaunchConfig& config);

// What is worth measuring, the usual one first: powers of two.
std::vector<LaunchConfig> candidates(const TunableKernel& kernel);

// "512 x 4", or "512" where the work decides how many blocks there are.
std::string to_text(const LaunchConfig& config);

}  // namespace fettle::kernels::cuda
