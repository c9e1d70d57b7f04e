#include "kernels/cuda/tunable.h"

#include <array>

namespace fettle::kernels::cuda {
namespace {

constexpr unsigned kWarp = 32;
constexpr LaunchConfig kCovers{256, 0};
// As many blocks as a multiprocessor holds at a time, or more.
constexpr LaunchConfig kGoesRound{256, 8};

// `embedding/backward` is of three kernels in a row.
constexpr std::array<TunableKernel, 19> kKernels{{
    {"add/add", kCovers},
    {"add/add_scaled", kCovers},
    {"cast/round", kCovers},
    {"cast/widen", kCovers},
    {"conv/add_bias", kCovers},
    {"dropout/backward", kCovers},
    {"dropout/forward", kCovers},
    {"embedding/backward", kCovers},
    {"embedding/forward", kCovers},
    {"gather/gather", kCovers},
    {"gelu/backward", kCovers},
    {"gelu/forward", kCovers},
    {"linear/add_slices", kGoesRound},
    {"optimizer/lamb_weights", kGoesRound},
    {"optimizer/update", kGoesRound},
    {"pool/backward", kCovers},
    {"pool/forward", kCovers},
    {"relu/backward", kCovers},
    {"relu/forward", kCovers},
}};

}  // namespace

std::span<const TunableKernel> tunable_kernels() { return kKernels; }

Result<TunableKernel> find_tunable(std::string_view name) {
  std::string names;
  for (const TunableKernel& kernel : kKernels) {
    if (kernel.name == name) return kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  return not_found("there is no kernel \"" + std::string(name) + "\" to tune, expected one of " +
                   names);
}

Status check_config(const TunableKernel& kernel, const LaunchConfig& config) {
  const std::string name(kernel.name);
  if (config.threads % kWarp != 0 || config.threads < kWarp || config.threads > kMostThreads) {
    return invalid(name + " takes no blocks of " + std::to_string(config.threads) +
                   " threads, expected a multiple of " + std::to_string(kWarp) + " up to " +
                   std::to_string(kMostThreads));
  }
  const unsigned blocks = config.blocks_per_multiprocessor;
  if (!kernel.goes_round() && blocks != 0) {
    return invalid(name + " takes no number of blocks, found " + std::to_string(blocks) +
                   " a multiprocessor: it has as many as its work needs; leave them out");
  }
  if (kernel.goes_round() && (blocks < 1 || blocks > kMostBlocksPerMultiprocessor)) {
    return invalid(name + " takes no " + std::to_string(blocks) +
                   " blocks a multiprocessor, expected 1 to " +
                   std::to_string(kMostBlocksPerMultiprocessor));
  }
  return success();
}

std::vector<LaunchConfig> candidates(const TunableKernel& kernel) {
  std::vector<LaunchConfig> configs{kernel.usual};
  const auto add = [&](const LaunchConfig& config) {
    if (config != kernel.usual) configs.push_back(config);
  };
  for (unsigned threads = 2 * kWarp; threads <= kMostThreads; threads *= 2) {
    if (!kernel.goes_round()) add({threads, 0});
    for (unsigned blocks = 2; kernel.goes_round() && blocks <= 16; blocks *= 2) {
      add({threads, blocks});
    }
  }
  return configs;
}

std::string to_text(const LaunchConfig& config) {
  std::string text = std::to_string(config.threads);
  if (config.blocks_per_multiprocessor != 0) {
    text += " x " + std::to_string(config.blocks_per_multiprocessor);
  }
  return text;
}

}  // namespace fettle::kernels::cuda
