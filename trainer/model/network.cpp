#include "trainer/model/network.h"

#include <algorithm>
#include <utility>

#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

Result<std::unique_ptr<Network>> Network::create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed) {
  FETTLE_ASSIGN(Parameters parameters, Parameters::initial(plan, options.type, seed, backend));
  std::unique_ptr<Network> network(new Network(plan, backend, options, std::move(parameters)));
  FETTLE_TRY(network->allocate());
  FETTLE_TRY(network->make_layers());
  network->parameters_.round_weights(backend);
  network->weights_changed();
  return network;
}

Network::Network(const NetworkPlan& plan, kernels::Backend& backend,
                 const kernels::PlanOptions& options, Parameters parameters)
    : plan_(plan),
      backward_plan_(plan_backward(plan)),
      backend_(backend),
      options_(options),
      parameters_(std::move(parameters)) {}

Status Network::allocate() {
  using Bytes = kernels::DeviceArray<std::uint8_t>;
  const std::int64_t bytes = options_.max_samples * kernels::size_of(options_.type);
  std::int64_t largest = 0;
  for (const LayerPlan& layer : plan_.layers) {
    largest = std::max(largest, layer.output.size());
    FETTLE_ASSIGN(outputs_.emplace_back(), Bytes::create(backend_, layer.output.size() * bytes));
  }
  for (std::int64_t i = 0; i < backward_plan_.slots; ++i) {
    FETTLE_ASSIGN(gradients_.emplace_back(), Bytes::create(backend_, largest * bytes));
  }
  return success();
}

Status Network::make_layers() {
  const LayerContext context{backend_, options_, parameters_};
  for (const LayerPlan& plan : plan_.layers) {
    auto layer = kind_of(plan.type).make(plan, context);
    if (!layer.ok()) return Error(layer.error()).in(plan.name);
    layers_.push_back(std::move(layer).value());
  }
  return success();
}

void Network::weights_changed() {
  for (const auto& layer : layers_) {
    if (layer) layer->weights_changed();
  }
}

kernels::ConstBuffer Network::output_of(std::int64_t layer, kernels::ConstBuffer images) const {
  return layer == kNetworkInput ? images : outputs_[static_cast<std::size_t>(layer)].data();
}

kernels::ConstBuffer Network::forward(const Pass& pass, kernels::ConstBuffer images) {
  CHECK(pass.samples <= options_.max_samples, "more samples than the network was planned for");
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerPlan& plan = plan_.layers[i];
    const Span span(trace_, "forward", plan.name);
    const kernels::ConstBuffer x = output_of(plan.source, images);
    if (layers_[i]) {
      layers_[i]->forward(pass, x, outputs_[i].data());
    } else {
      backend_.add(options_.type, pass.samples * plan.output.size(), x,
                   output_of(plan.shortcut, images), outputs_[i].data());
    }
  }
  return outputs_.back().data();
}

void Network::backward(const Pass& pass, kernels::ConstBuffer images) {
  for (const BackwardStep& step : backward_plan_.steps) {
    const Span span(trace_, "backward", plan_.layers[static_cast<std::size_t>(step.layer)].name);
    if (layers_[static_cast<std::size_t>(step.layer)]) {
      step_back(pass, step, images);
    } else {
      step_back_add(pass, step);
    }
  }
}

void Network::step_back(const Pass& pass, const BackwardStep& step, kernels::ConstBuffer images) {
  const auto i = static_cast<std::size_t>(step.layer);
  const LayerPlan& plan = plan_.layers[i];
  layers_[i]->backward(pass, output_of(plan.source, images), outputs_[i].data(), slot(step.dy),
                       slot(step.dx));
  if (step.sum == kNoSlot) return;
  backend_.add(options_.type, pass.samples * plan.input.size(), slot(step.sum), slot(step.dx),
               slot(step.sum));
}

void Network::step_back_add(const Pass& pass, const BackwardStep& step) {
  const std::int64_t elements =
      pass.samples * plan_.layers[static_cast<std::size_t>(step.layer)].output.size();
  if (step.sum != kNoSlot) {
    backend_.add(options_.type, elements, slot(step.sum), slot(step.dy), slot(step.sum));
  }
  if (step.copy != kNoSlot) {
    backend_.copy(slot(step.dy), slot(step.copy), elements * kernels::size_of(options_.type));
  }
}

kernels::Buffer Network::slot(std::int64_t number) {
  return number == kNoSlot ? nullptr : gradients_[static_cast<std::size_t>(number)].data();
}

}  // namespace fettle::trainer
