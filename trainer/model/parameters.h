// Parameters: the numbers that training changes, in flat arrays of a backend, laid out by a
// NetworkPlan.
//
// If the optimiser is sharded and operations read 16-bit copies, a worker keeps the fp32 masters of
// its shard only (ZeRO, stage 1; Rajbhandari et al. 2020). Parameters behind `decayed` (biases,
// normalisation), which operations read in fp32 whatever the precision, stay whole on every worker:
// they are few.
// Invariant: the gaps between blocks stay zero in all arrays, so that sums over whole arrays can
// ignore the blocks. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Floats behind the gradients for a step's sums.
inline constexpr std::int64_t kStepSums = sizeof(kernels::StepSums) / sizeof(float);

// Initial values of a network, in host memory, as in torch.nn (Kaiming-uniform with a = sqrt(5),
// which is uniform within 1 / sqrt(fan in), for weights and biases; 1 and 0 for normalisation).
// Keyed by (seed, layer): a layer starts the same whatever stands before it.
struct InitialValues {
  std::vector<float> weights;
  std::vector<float> statistics;
};
InitialValues initial_values(const NetworkPlan& plan, std::uint64_t seed);

// The decayed parameters that a worker keeps in fp32, if its optimiser is sharded and operations
// read 16-bit copies of `type`; nullopt: all.
std::optional<Range> masters_kept(const NetworkPlan& plan, const std::optional<Range>& shard,
                                  kernels::DataType type);

struct Parameters {
  std::int64_t count = 0;    // of all parameters, with the gaps
  std::int64_t decayed = 0;  // the first `decayed` of them, as in NetworkPlan
  // fp32 masters: of all parameters or, if masters are sharded, of the parameters from `decayed`
  // on.
  kernels::DeviceArray<float> weights;
  std::optional<Range> kept;          // this worker's decayed parameters; nullopt: all
  kernels::DeviceArray<float> shard;  // the masters of `kept`
  // Sums over the samples of an optimiser step: gradients of the weights, statistics of each
  // sample's micro-batch, then step_sums(), so that one message between workers carries them all.
  kernels::DeviceArray<float> gradients;
  kernels::DeviceArray<std::uint16_t> rounded;  // 16-bit copies of all masters; empty in fp32
  kernels::DataType rounded_type = kernels::DataType::kBFloat16;
  kernels::DeviceArray<float> statistics;  // running means and variances, ranges
  // Whether quantize layers round, and operations read `grids`; else the layers pass numbers on.
  bool quantizes = true;
  // Weights on grids, in the type of operations and with the offsets of `weights`, if the network
  // is trained on them (LayerPlan::weight_bits).
  kernels::DeviceArray<std::uint8_t> grids;

  // All zeros, without masters: keep_masters_of() makes them. `trained`: with gradients. Errors:
  // too little memory.
  static Result<Parameters> create(const NetworkPlan& plan, kernels::DataType type,
                                   kernels::Backend& backend, bool trained = true);
  // Keeps only the masters of these decayed parameters from now on (nullopt: all); the masters'
  // values are lost. Errors: too little memory.
  Status keep_masters_of(const std::optional<Range>& decayed_range, kernels::Backend& backend);

  // Sets the kept masters and all 16-bit copies from the whole weights. Errors: too little memory
  // for a piece of them.
  Status set_weights(std::span<const float> all, kernels::Backend& backend);

  // Zeroes the masters, and the 16-bit copies of other workers' masters, that `mask` drops: a bit
  // for each of the first `decayed` parameters, as UpdateBuffers::mask.
  void apply_mask(std::span<const std::uint16_t> mask);

  // The master of a parameter; later masters follow it in the array. It must be kept here.
  float* master(std::int64_t parameter);

  float* statistic_sums() { return gradients.data() + count; }
  kernels::StepSums* step_sums() {
    return reinterpret_cast<kernels::StepSums*>(statistic_sums() + statistics.size());
  }
  // All values that a step sums over the workers, in the backend's memory.
  std::span<float> all_gradients() {
    return {gradients.data(), static_cast<std::size_t>(gradients.size())};
  }
  std::span<float> all_weights() {
    return {weights.data(), static_cast<std::size_t>(weights.size())};
  }
  // The 16-bit copies, two to a float, for operations that move floats and change no bit.
  std::span<float> rounded_in_pairs() {
    return {reinterpret_cast<float*>(rounded.data()), static_cast<std::size_t>(count / 2)};
  }

  // Updates the 16-bit copies from the masters. If the masters are sharded, the copies come from
  // the other workers instead.
  void round_weights(kernels::Backend& backend);

  // Moves the weights of layers that are trained on grids there, if `quantizes`.
  void round_to_grids(const NetworkPlan& plan, kernels::Backend& backend);

  // A block in the type that operations read.
  kernels::ConstBuffer typed(const Block& block);
  // The layer's weights as its operation reads them.
  kernels::ConstBuffer operand(const LayerPlan& layer);
  // A block that operations read in fp32.
  const float* values(const Block& block) { return master(block.offset); }
  float* gradient(const Block& block) { return gradients.data() + block.offset; }

 private:
  kernels::DataType type() const {
    return rounded.empty() ? kernels::DataType::kFloat32 : rounded_type;
  }
  std::uint8_t* grid(const Block& block) {
    return grids.data() + block.offset * kernels::size_of(type());
  }
};

}  // namespace fettle::trainer
