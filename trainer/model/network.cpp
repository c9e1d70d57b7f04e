#include "trainer/model/network.h"

#include <algorithm>

#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

Result<std::unique_ptr<Network>> Network::create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed) {
  std::unique_ptr<Network> network(new Network(plan, options, seed));
  FETTLE_TRY(network->make_layers(backend));
  network->parameters_.round_weights(backend);
  network->weights_changed();
  return network;
}

Network::Network(const NetworkPlan& plan, const kernels::PlanOptions& options, std::uint64_t seed)
    : plan_(plan), options_(options), parameters_(Parameters::initial(plan, options.type, seed)) {
  const std::int64_t bytes = options.max_samples * kernels::size_of(options.type);
  std::int64_t largest = 0;
  for (const LayerPlan& layer : plan_.layers) {
    largest = std::max(largest, layer.output.size());
    outputs_.emplace_back(layer.output.size() * bytes);
  }
  for (auto& gradient : gradients_) gradient = kernels::AlignedArray<std::uint8_t>(largest * bytes);
  while (!plan_.layers[first_trained_].has_parameters()) ++first_trained_;
}

Status Network::make_layers(kernels::Backend& backend) {
  const LayerContext context{backend, options_, parameters_};
  for (const LayerPlan& plan : plan_.layers) {
    auto layer = kind_of(plan.type).make(plan, context);
    if (!layer.ok()) return Error(layer.error()).in(plan.name);
    layers_.push_back(std::move(layer).value());
  }
  return success();
}

void Network::weights_changed() {
  for (const auto& layer : layers_) layer->weights_changed();
}

kernels::ConstBuffer Network::forward(const Pass& pass, kernels::ConstBuffer images) {
  CHECK(pass.samples() <= options_.max_samples, "more samples than the network was planned for");
  kernels::ConstBuffer x = images;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i]->forward(pass, x, outputs_[i].data());
    x = outputs_[i].data();
  }
  return x;
}

void Network::backward(const Pass& pass, kernels::ConstBuffer images) {
  std::size_t current = 0;  // which of the two gradients belongs to this layer's output
  for (std::size_t i = layers_.size(); i-- > first_trained_;) {
    const kernels::ConstBuffer x = i == 0 ? images : outputs_[i - 1].data();
    const kernels::Buffer dx = i == first_trained_ ? nullptr : gradients_[1 - current].data();
    layers_[i]->backward(pass, x, outputs_[i].data(), gradients_[current].data(), dx);
    current = 1 - current;
  }
}

}  // namespace fettle::trainer
