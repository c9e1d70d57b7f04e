#include "trainer/model/network.h"

#include <utility>

#include "trainer/model/backward_plan.h"
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

using Layers = std::vector<std::unique_ptr<Layer>>;

kernels::DataType type_in(const kernels::PlanOptions& options, const LayerPlan& layer) {
  return layer.wide ? kernels::DataType::kFloat32 : options.type;
}

struct MadeLayers {
  Layers layers;
  std::vector<LayerImplementation> implementations;
};

// The values of `parameters` need not be set yet.
Result<MadeLayers> make_layers(const NetworkPlan& plan, kernels::Backend& backend,
                               const kernels::PlanOptions& options, Parameters& parameters) {
  MadeLayers all;
  (void)backend.take_recent_implementations();  // drops entries of earlier operations
  const std::vector<bool> input_gradients = needed_input_gradients(plan);
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const LayerPlan& layer = plan.layers[i];
    LayerContext context{backend, options, parameters};
    context.options.input_gradient = options.input_gradient && input_gradients[i];
    // A cast handles both types itself.
    if (layer.type != api::LayerType::kCast) context.options.type = type_in(options, layer);
    auto made = kind_of(layer.type).make(layer, context);
    if (!made.ok()) return Error(made.error()).in(layer.name);
    all.layers.push_back(std::move(made).value());
    for (kernels::Implementation& pass : backend.take_recent_implementations()) {
      all.implementations.push_back({layer.name, std::move(pass)});
    }
  }
  return all;
}

}  // namespace

Result<kernels::Workspace> Network::workspace(const NetworkPlan& plan, kernels::Backend& backend,
                                              const kernels::PlanOptions& options) {
  return backend.workspace([&]() -> Status {
    Parameters none;  // planning operations needs only shapes
    FETTLE_ASSIGN(const MadeLayers dropped, make_layers(plan, backend, options, none));
    return success();
  });
}

Result<std::unique_ptr<Network>> Network::create(const NetworkPlan& plan, kernels::Backend& backend,
                                                 const kernels::PlanOptions& options,
                                                 std::uint64_t seed, bool recompute,
                                                 const std::optional<Range>& shard) {
  FETTLE_ASSIGN(Parameters parameters, Parameters::create(plan, options.type, backend));
  std::unique_ptr<Network> network(new Network(plan, backend, options, std::move(parameters),
                                               plan_activations(plan, recompute)));
  FETTLE_TRY(network->make_layers_and_memory());
  FETTLE_TRY(network->restart(seed, shard));
  return network;
}

Result<std::unique_ptr<Network>> Network::create_forward_only(const NetworkPlan& plan,
                                                              kernels::Backend& backend,
                                                              kernels::PlanOptions options,
                                                              std::span<const float> weights,
                                                              std::span<const float> statistics) {
  options.input_gradient = false;
  FETTLE_ASSIGN(Parameters parameters,
                Parameters::create(plan, options.type, backend, /*trained=*/false));
  std::unique_ptr<Network> network(
      new Network(plan, backend, options, std::move(parameters), plan_forward(plan)));
  FETTLE_TRY(network->make_layers_and_memory());
  Parameters& made = network->parameters_;
  FETTLE_TRY(made.keep_masters_of(masters_kept(plan, Range{}, options.type), backend));
  FETTLE_TRY(made.set_weights(weights, backend));
  if (!statistics.empty()) made.statistics.upload(statistics);
  network->weights_changed();
  return network;
}

Status Network::restart(std::uint64_t seed, const std::optional<Range>& shard) {
  FETTLE_TRY(parameters_.keep_masters_of(masters_kept(plan_, shard, options_.type), backend_));
  const InitialValues values = initial_values(plan_, seed);
  FETTLE_TRY(parameters_.set_weights(values.weights, backend_));
  parameters_.statistics.upload(values.statistics);
  parameters_.gradients.set_zero();
  parameters_.quantizes = true;
  weights_changed();
  return success();
}

void Network::set_quantizes(bool quantizes) {
  parameters_.quantizes = quantizes;
  weights_changed();
}

Network::Network(const NetworkPlan& plan, kernels::Backend& backend,
                 const kernels::PlanOptions& options, Parameters parameters,
                 ActivationPlan activations)
    : plan_(plan),
      activations_(std::move(activations)),
      backend_(backend),
      options_(options),
      parameters_(std::move(parameters)) {}

Status Network::make_layers_and_memory() {
  const std::int64_t bytes = kernels::size_of(options_.type);
  FETTLE_ASSIGN(memory_, kernels::DeviceArray<std::uint8_t>::create(
                             backend_, activations_.elements * options_.max_samples * bytes));
  if (activations_.repeated > 0) {
    FETTLE_ASSIGN(spare_statistics_,
                  kernels::DeviceArray<float>::create(backend_, plan_.statistics));
  }
  FETTLE_ASSIGN(MadeLayers made, make_layers(plan_, backend_, options_, parameters_));
  layers_ = std::move(made.layers);
  implementations_ = std::move(made.implementations);
  return success();
}

kernels::DataType Network::type_of(const LayerPlan& layer) const {
  return type_in(options_, layer);
}

void Network::weights_changed() {
  parameters_.round_to_grids(plan_, backend_);
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
  Pass again = pass;  // for layers that run forward a second time
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
                                                                 .other = at(step.other),
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
