#include "trainer/files/int8_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/quantize/quantized_plan.h"
#include "trainer/quantize/weight_grid.h"

namespace fettle::trainer {

Result<SavedModel> int8_model(const SavedModel& model) {
  if (model.int8_ranges.empty()) {
    const std::string step = std::to_string(model.position.epoch);
    return invalid(model.config.training.quantize
                       ? "the checkpoint of epoch " + step +
                             " has no 8-bit network: one is made at rungs and at the end"
                       : "the trial has no 8-bit network; train with training.quantize");
  }
  FETTLE_ASSIGN(NetworkValues made, quantized_network(model.config.model, model.format,
                                                      model.weights, model.statistics));
  FETTLE_TRY(set_ranges(model.int8_ranges, made.plan, made.statistics));
  const auto config = model.config.training.quantize.value_or(api::QuantizeConfig{});
  round_to_integers(made.plan, made.statistics, config.weight_bits, made.weights);
  SavedModel rounded = model;
  rounded.plan = std::move(made.plan);
  rounded.weights = std::move(made.weights);
  rounded.statistics = std::move(made.statistics);
  return rounded;
}

bool is_int8(const SavedModel& model) {
  return std::ranges::any_of(model.plan.layers, [](const LayerPlan& layer) {
    return layer.type == api::LayerType::kQuantize;
  });
}

}  // namespace fettle::trainer
