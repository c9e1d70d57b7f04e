#include "trainer/model/network.h"

#include <utility>

#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

Result<std::unique_ptr<Network>> Network::create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed, bool recompute,
                                                 const std::optional<Range>& shard) {
  FETTLE_ASSIGN(Parameters parameters, Parameters::create(plan, options.type, backend));
  std::unique_ptr<Network> network(
      new Network(plan, backend, options, std::move(parameters), recompute));
  FETTLE_TRY(network->allocate());
  FETTLE_TRY(network->make_layers());
  FETTLE_TRY(network->restart(seed, shard));
  return network;
}

Status Network::restart(std::uint64_t seed, const std::optional<Range>& shard) {
  FETTLE_TRY(parameters_.keep_masters_of(masters_kept(plan_, shard, options_.type), backend_));
  const InitialValues values = initial_values(plan_, seed);
  FETTLE_TRY(parameters_.set_weights(values.weights, backend_));
  parameters_.statistics.upload(values.statistics);
  parameters_.gradients.set_zero();
  weights_changed();
  return success();
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
  for (const LayerPlan& plan : plan_.layers) {
    LayerContext context{backend_, options_, parameters_};
    // A cast is the layer that knows both types.
    if (plan.type != api::LayerType::kCast) context.options.type = type_of(plan);
    auto layer = kind_of(plan.type).make(plan, context);
    if (!layer.ok()) return Error(layer.error()).in(plan.name);
    layers_.push_back(std::move(layer).value());
  }
  return success();
}

kernels::DataType Network::type_of(const LayerPlan& layer) const {
  return layer.wide ? kernels::DataType::kFloat32 : options_.type;
}

void Network::weights_changed() {
  for (const auto& layer : layers_) layer->weights_changed();
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
  layers_[static_cast<std::size_t>(step.layer)]->forward(pass,
                                                         {.x = given(step.x, images),
                                                          .y = at(step.y),
                                                          .shortcut = given(step.shortcut, images),
                                                          .sum = at(step.sum),
                                                          .gelu = at(step.gelu)});
}

void Network::backward(const Pass& pass, kernels::ConstBuffer images, const LayerDone& layer_done) {
  Pass again = pass;
  again.statistics = spare_statistics_.data();
  for (const ActivationStep& step : activations_.backward) {
    const Span span(trace_, step.forward ? "recompute" : "backward", name_of(step));
    if (step.forward) {
      run(again, step, images);
    } else {
      step_back(pass, step, images);
    }
    if (layer_done && !step.forward) layer_done(step.layer);
  }
}

void Network::step_back(const Pass& pass, const ActivationStep& step, kernels::ConstBuffer images) {
  layers_[static_cast<std::size_t>(step.layer)]->backward(pass, {.x = given(step.x, images),
                                                                 .y = at(step.y),
                                                                 .before = at(step.before),
                                                                 .dy = at(step.dy),
                                                                 .dx = at(step.dx),
                                                                 .adds = step.adds});
  if (step.sum == kNowhere) return;
  const LayerPlan& layer = plan_.layer(step.layer);
  const std::int64_t elements = pass.samples * layer.input.size();
  const kernels::DataType type = type_of(plan_.layer(layer.source));
  backend_.add(type, elements, at(step.sum), at(step.dx), at(step.sum), /*relu=*/false);
}

kernels::Buffer Network::at(std::int64_t place) {
  if (place == kNowhere) return nullptr;
  return memory_.data() + place * options_.max_samples * kernels::size_of(options_.type);
}

kernels::ConstBuffer Network::given(std::int64_t place, kernels::ConstBuffer images) {
  return place == kAtInput ? images : at(place);
}

}  // namespace fettle::trainer
