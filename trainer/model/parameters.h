// Parameters: the numbers that training changes, in flat arrays of a backend, laid out by a
// NetworkPlan.
//
// Invariant: the gaps between blocks stay zero in all arrays, so that sums over whole arrays need
// not know the blocks. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Floats that a step's sums take behind its gradients.
inline constexpr std::int64_t kStepSums = sizeof(kernels::StepSums) / sizeof(float);

struct Parameters {
  kernels::DeviceArray<float> weights;  // fp32 masters
  // Sums over the samples of an optimiser step: of the weights' gradients, of the statistics that
  // each sample's micro-batch gave, then step_sums(), so that one message between workers carries
  // all of it.
  kernels::DeviceArray<float> gradients;
  kernels::DeviceArray<std::uint16_t> rounded;  // 16-bit copies of the masters; empty in fp32
  kernels::DataType rounded_type = kernels::DataType::kBFloat16;
  kernels::DeviceArray<float> statistics;  // running means and variances

  // Draws the initial values as torch.nn does (Kaiming-uniform with a = sqrt(5), which is uniform
  // within 1 / sqrt(fan in), for weights and biases; 1 and 0 for normalisation), keyed by (seed,
  // layer): a layer starts the same whatever stands before it. `rounded` is not yet filled.
  // Errors: there is not so much memory.
  static Result<Parameters> initial(const NetworkPlan& plan, kernels::DataType type,
                                    std::uint64_t seed, kernels::Backend& backend);

  float* statistic_sums() { return gradients.data() + weights.size(); }
  kernels::StepSums* step_sums() {
    return reinterpret_cast<kernels::StepSums*>(statistic_sums() + statistics.size());
  }
  // All that a step sums up over the workers, in the backend's memory.
  std::span<float> all_gradients() {
    return {gradients.data(), static_cast<std::size_t>(gradients.size())};
  }

  std::span<float> all_weights() {
    return {weights.data(), static_cast<std::size_t>(weights.size())};
  }

  // Brings the 16-bit copies up to date with the masters.
  void round_weights(kernels::Backend& backend);

  // A block in the type that operations take.
  kernels::ConstBuffer typed(const Block& block) const;
  const float* values(const Block& block) const { return weights.data() + block.offset; }
  float* gradient(const Block& block) { return gradients.data() + block.offset; }
};

}  // namespace fettle::trainer
