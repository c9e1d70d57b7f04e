#include "trainer/model/parameters.h"

#include <algorithm>

#include "base/philox.h"

namespace fettle::trainer {

namespace {

constexpr std::uint64_t kInitialPurpose = 0x696E6974;  // "init"

void draw(const Block& block, std::uint64_t key, std::uint64_t stream, float* to) {
  float* begin = to + block.offset;
  if (!block.drawn()) {
    std::fill_n(begin, block.count, block.fill);
    return;
  }
  Random random(key, stream);
  if (block.deviation > 0) {
    for (std::int64_t i = 0; i < block.count; ++i) {
      begin[i] = static_cast<float>(block.deviation * random.normal());
    }
    return;
  }
  for (std::int64_t i = 0; i < block.count; ++i) {
    begin[i] = static_cast<float>((2 * random.uniform() - 1) * block.bound);
  }
}

}  // namespace

Parameters Parameters::initial(const NetworkPlan& plan, kernels::DataType type,
                               std::uint64_t seed) {
  Parameters made;
  made.weights = kernels::AlignedArray<float>(plan.parameters);
  made.gradients = kernels::AlignedArray<float>(plan.parameters + plan.statistics + kStepSums);
  made.statistics = kernels::AlignedArray<float>(plan.statistics);
  if (type != kernels::DataType::kFloat32) {
    made.rounded_type = type;
    made.rounded = kernels::AlignedArray<std::uint16_t>(plan.parameters);
  }
  for (const LayerPlan& layer : plan.layers) {
    const std::uint64_t key =
        mix_keys(mix_keys(seed, kInitialPurpose), static_cast<std::uint64_t>(layer.index));
    draw(layer.weights, key, 0, made.weights.data());
    draw(layer.biases, key, 1, made.weights.data());
    draw(layer.positions, key, 4, made.weights.data());
    draw(layer.running_mean, key, 2, made.statistics.data());
    draw(layer.running_variance, key, 3, made.statistics.data());
  }
  return made;
}

void Parameters::round_weights(kernels::Backend& backend) {
  if (rounded.empty()) return;
  backend.round(rounded_type, {weights.data(), static_cast<std::size_t>(weights.size())},
                rounded.data());
}

kernels::ConstBuffer Parameters::typed(const Block& block) const {
  if (rounded.empty()) return weights.data() + block.offset;
  return rounded.data() + block.offset;
}

}  // namespace fettle::trainer
