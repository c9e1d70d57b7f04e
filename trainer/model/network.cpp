#include "trainer/model/network.h"

#include <utility>

#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

Result<std::unique_ptr<Network>> Network::create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed, bool recompute) {
  FETTLE_ASSIGN(Parameters parameters, Parameters::initial(plan, options.type, seed, backend));
  std::unique_ptr<Network> network(
      new Network(plan, backend, options, std::move(parameters), recompute));
  FETTLE_TRY(network->allocate());
  FETTLE_TRY(network->make_layers());
  network->parameters_.round_weights(backend);
  network->weights_changed();
  return network;
}

Network::Network(const NetworkPlan& plan, kernels::Backend& backend,
                 const kernels::PlanOptions& options, Parameters parameters, bool recompute)
    : plan_(plan),
      activations_(plan_activations(plan, recompute)),
      backend_(backend),
      options_(options),
      parameters_(std::move(parameters)) {}

Status Network::allocate() {
  const std::int64_t bytes = kernels::size_of(options_.type);
  FETTLE_ASSIGN(memory_, kernels::DeviceArray<std::uint8_t>::create(
                             backend_, activations_.elements * options_.max_samples * bytes));
  if (activations_.repeated == 0) return success();
  FETTLE_ASSIGN(spare_statistics_, kernels::DeviceArray<float>::create(backend_, plan_.statistics));
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

kernels::ConstBuffer Network::forward(const Pass& pass, kernels::ConstBuffer images) {
  CHECK(pass.samples <= options_.max_samples, "more samples than the network was planned for");
  for (const ActivationStep& step : activations_.forward) {
    const Span span(trace_, "forward", name_of(step));
    run(pass, step, images);
  }
  return at(activations_.last().y);
}

void Network::run(const Pass& pass, const ActivationStep& step, kernels::ConstBuffer images) {
  const auto i = static_cast<std::size_t>(step.layer);
  const LayerPlan& plan = plan_.layers[i];
  const kernels::ConstBuffer x = given(plan.source, step.x, images);
  if (layers_[i]) return layers_[i]->forward(pass, x, at(step.y));
  backend_.add(options_.type, pass.samples * plan.output.size(), x,
               given(plan.shortcut, step.shortcut, images), at(step.y), false);
}

void Network::backward(const Pass& pass, kernels::ConstBuffer images, const LayerDone& layer_done) {
  Pass again = pass;
  again.statistics = spare_statistics_.data();
  for (const ActivationStep& step : activations_.backward) {
    const Span span(trace_, step.forward ? "recompute" : "backward", name_of(step));
    if (step.forward) {
      run(again, step, images);
    } else if (layers_[static_cast<std::size_t>(step.layer)]) {
      step_back(pass, step, images);
    } else {
      step_back_add(pass, step);
    }
    if (layer_done && !step.forward) layer_done(step.layer);
  }
}

void Network::step_back(const Pass& pass, const ActivationStep& step, kernels::ConstBuffer images) {
  const auto i = static_cast<std::size_t>(step.layer);
  const LayerPlan& plan = plan_.layers[i];
  layers_[i]->backward(pass, given(plan.source, step.x, images), at(step.y), at(step.dy),
                       at(step.dx));
  if (step.sum == kNowhere) return;
  backend_.add(options_.type, pass.samples * plan.input.size(), at(step.sum), at(step.dx),
               at(step.sum), false);
}

void Network::step_back_add(const Pass& pass, const ActivationStep& step) {
  const std::int64_t elements =
      pass.samples * plan_.layers[static_cast<std::size_t>(step.layer)].output.size();
  if (step.sum != kNowhere) {
    backend_.add(options_.type, elements, at(step.sum), at(step.dy), at(step.sum), false);
  }
  if (step.copy != kNowhere) {
    backend_.copy(at(step.dy), at(step.copy), elements * kernels::size_of(options_.type));
  }
}

kernels::Buffer Network::at(std::int64_t place) {
  if (place == kNowhere) return nullptr;
  return memory_.data() + place * options_.max_samples * kernels::size_of(options_.type);
}

kernels::ConstBuffer Network::given(std::int64_t source, std::int64_t place,
                                    kernels::ConstBuffer images) {
  return source == kNetworkInput ? images : at(place);
}

}  // namespace fettle::trainer
