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

struct Parameters {
  kernels::AlignedArray<float> weights;          // fp32 masters
  kernels::AlignedArray<float> gradients;        // sums over the samples of an optimiser step
  kernels::AlignedArray<std::uint16_t> rounded;  // bf16 copies of the masters; empty in fp32
  kernels::AlignedArray<float> statistics;       // running means and variances

  // Draws the initial values as torch.nn does (Kaiming-uniform with a = sqrt(5), which is uniform
  // within 1 / sqrt(fan in), for weights and biases; 1 and 0 for normalisation), keyed by (seed,
  // layer): a layer starts the same whatever stands before it.
  static Parameters initial(const NetworkPlan& plan, kernels::DataType type, std::uint64_t seed);

  // Brings the bf16 copies up to date with the masters.
  void round_weights(kernels::Backend& backend);

  // The weights of a block in the type that operations take.
  kernels::ConstBuffer typed(const Block& block) const;
  const float* values(const Block& block) const { return weights.data() + block.offset; }
  float* gradient(const Block& block) { return gradients.data() + block.offset; }
};

}  // namespace fettle::trainer
