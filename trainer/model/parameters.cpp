#include "trainer/model/parameters.h"

#include <vector>

#include "base/philox.h"
#include "trainer/model/initial_values.h"

namespace fettle::trainer {

namespace {

constexpr std::uint64_t kInitialPurpose = 0x696E6974;  // "init"

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
  const std::int64_t threads = threads_for_drawing();
  for (const LayerPlan& layer : plan.layers) {
    const std::uint64_t key =
        mix_keys(mix_keys(seed, kInitialPurpose), static_cast<std::uint64_t>(layer.index));
    draw_initial(layer.weights, key, 0, threads, weights.data());
    draw_initial(layer.biases, key, 1, threads, weights.data());
    draw_initial(layer.positions, key, 4, threads, weights.data());
    draw_initial(layer.running_mean, key, 2, threads, statistics.data());
    draw_initial(layer.running_variance, key, 3, threads, statistics.data());
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
