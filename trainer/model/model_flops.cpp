#include "trainer/model/model_flops.h"

namespace fettle::trainer {

namespace {

double multiply_adds(const LayerPlan& layer) {
  if (layer.type != api::LayerType::kAttention) return layer.multiply_adds;
  // Queries by keys, and weights by values: for each head length x length x width.
  const auto length = static_cast<double>(layer.input.height);
  return 2 * length * length * static_cast<double>(layer.output.channels);
}

}  // namespace

double inference_flops(const NetworkPlan& plan) {
  constexpr double kFlopsOfMultiplyAdd = 2;
  double total = 0;
  for (const LayerPlan& layer : plan.layers) total += multiply_adds(layer);
  return kFlopsOfMultiplyAdd * total;
}

double model_flops(const NetworkPlan& plan) {
  constexpr double kPasses = 3;  // forward, gradients of inputs, gradients of weights
  constexpr double kFlopsOfMultiplyAdd = 2;
  double total = 0;
  for (const LayerPlan& layer : plan.layers) {
    total += kFlopsOfMultiplyAdd * multiply_adds(layer) * (layer.frozen ? 1 : kPasses);
  }
  return total;
}

}  // namespace fettle::trainer
