#include "trainer/norm_samples.h"

#include <algorithm>
#include <string>

namespace fettle::trainer {
namespace {

bool has_norm_of_one_pixel(const NetworkPlan& plan) {
  return std::ranges::any_of(plan.layers, [](const LayerPlan& layer) {
    return layer.type == api::LayerType::kBatchNorm && layer.input.height * layer.input.width == 1;
  });
}

// Whether cutting a batch into groups leaves one with a single sample.
bool has_group_of_one(std::int64_t batch, std::int64_t norm_group) {
  if (batch == 0) return false;
  const std::int64_t most = norm_group > 0 ? norm_group : batch;
  return std::ranges::any_of(micro_batches({0, batch}, most),
                             [](const Range& group) { return group.size() == 1; });
}

Error one_value(const std::string& where, const std::string& way_out) {
  return invalid("batchNorm needs more than one value per channel, and there is a layer of it " +
                 std::string("without height and width, where a sample has one: ") + where + "; " +
                 way_out);
}

}  // namespace

Status check_norm_samples(const api::TrainerConfig& config, const NetworkPlan& plan,
                          const TrainingWorld& world) {
  if (!api::mixes_samples(config)) return success();
  if (world.world_size > 1 && !config.training.norm_group) {
    const bool norm = api::has_batch_norm(config.model);
    return invalid(std::string(norm ? "the statistics of batchNorm" : "the ranges of quantize") +
                   " would depend on there being " + std::to_string(world.world_size) +
                   " workers; set training.normGroup");
  }
  if (!has_norm_of_one_pixel(plan)) return success();
  const StepShape step = plan_step(config, world);
  const std::int64_t group = step.dealing.norm_group;
  if (has_group_of_one(step.global_batch, group)) {
    return one_value("a group of samples would be one (batch " + std::to_string(step.global_batch) +
                         (group > 0 ? ", normGroup " + std::to_string(group) : "") + ")",
                     group > 0 ? "use a larger training.normGroup" : "use a larger batch");
  }
  if (has_group_of_one(world.train_samples % step.global_batch, group)) {
    return one_value("of " + std::to_string(world.train_samples) +
                         " training samples in batches of " + std::to_string(step.global_batch) +
                         " the last batch of an epoch would leave a group of one",
                     "use another batch, or one sample more or less "
                     "(data.trainSamples, data.validationSamples)");
  }
  return success();
}

}  // namespace fettle::trainer
