#include "trainer/model/parameters.h"

#include <algorithm>
#include <vector>

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

Result<Parameters> Parameters::initial(const NetworkPlan& plan, kernels::DataType type,
                                       std::uint64_t seed, kernels::Backend& backend) {
  using Floats = kernels::DeviceArray<float>;
  Parameters made;
  FETTLE_ASSIGN(made.weights, Floats::create(backend, plan.parameters));
  FETTLE_ASSIGN(made.gradients,
                Floats::create(backend, plan.parameters + plan.statistics + kStepSums));
  FETTLE_ASSIGN(made.statistics, Floats::create(backend, plan.statistics));
  if (type != kernels::DataType::kFloat32) {
    made.rounded_type = type;
    FETTLE_ASSIGN(made.rounded,
                  kernels::DeviceArray<std::uint16_t>::create(backend, plan.parameters));
  }
  std::vector<float> weights(static_cast<std::size_t>(plan.parameters));
  std::vector<float> statistics(static_cast<std::size_t>(plan.statistics));
  for (const LayerPlan& layer : plan.layers) {
    const std::uint64_t key =
        mix_keys(mix_keys(seed, kInitialPurpose), static_cast<std::uint64_t>(layer.index));
    draw(layer.weights, key, 0, weights.data());
    draw(layer.biases, key, 1, weights.data());
    draw(layer.positions, key, 4, weights.data());
    draw(layer.running_mean, key, 2, statistics.data());
    draw(layer.running_variance, key, 3, statistics.data());
  }
  made.weights.upload(weights);
  made.statistics.upload(statistics);
  return made;
}

void Parameters::round_weights(kernels::Backend& backend) {
  if (rounded.empty()) return;
  backend.round(rounded_type, weights.size(), weights.data(), rounded.data());
}

kernels::ConstBuffer Parameters::typed(const Block& block) const {
  if (rounded.empty()) return weights.data() + block.offset;
  return rounded.data() + block.offset;
}

}  // namespace fettle::trainer
