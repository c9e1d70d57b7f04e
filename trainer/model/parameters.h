// Parameters: the numbers that training changes, in flat arrays laid out by a NetworkPlan.
//
// Invariant: the gaps between blocks stay zero in all arrays, so that sums over whole arrays need
// not know the blocks. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/aligned.h"
#include "kernels/backend.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Numbers of an optimiser step that travel with its gradients.
inline constexpr std::int64_t kStepSums = 6;

struct Parameters {
  kernels::AlignedArray<float> weights;  // fp32 masters
  // Sums over the samples of an optimiser step: of the weights' gradients, of the statistics that
  // each sample's micro-batch gave, then step_sums(), so that one message between workers carries
  // all of it.
  kernels::AlignedArray<float> gradients;
  kernels::AlignedArray<std::uint16_t> rounded;  // 16-bit copies of the masters; empty in fp32
  kernels::DataType rounded_type = kernels::DataType::kBFloat16;
  kernels::AlignedArray<float> statistics;  // running means and variances

  // Draws the initial values as torch.nn does (Kaiming-uniform with a = sqrt(5), which is uniform
  // within 1 / sqrt(fan in), for weights and biases; 1 and 0 for normalisation), keyed by (seed,
  // layer): a layer starts the same whatever stands before it.
  static Parameters initial(const NetworkPlan& plan, kernels::DataType type, std::uint64_t seed);

  std::span<float> weight_gradients() {
    return all_gradients().first(static_cast<std::size_t>(weights.size()));
  }
  std::span<float> statistic_sums() {
    return all_gradients().subspan(static_cast<std::size_t>(weights.size()),
                                   static_cast<std::size_t>(statistics.size()));
  }
  std::span<float, kStepSums> step_sums() { return all_gradients().last<kStepSums>(); }
  std::span<float> all_gradients() { return {gradients.begin(), gradients.end()}; }

  // Brings the 16-bit copies up to date with the masters.
  void round_weights(kernels::Backend& backend);

  // The weights of a block in the type that operations take.
  kernels::ConstBuffer typed(const Block& block) const;
  const float* values(const Block& block) const { return weights.data() + block.offset; }
  float* gradient(const Block& block) { return gradients.data() + block.offset; }
};

}  // namespace fettle::trainer
