#include "trainer/step/memory_plan.h"

#include <algorithm>

#include "api/study/resolve.h"
#include "base/machine/units.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/identity.h"
#include "trainer/data/loader.h"
#include "trainer/model/activation_plan.h"
#include "trainer/step/optimizer.h"
#include "trainer/step/optimizer_shards.h"
#include "trainer/step/precision.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::int64_t kLoadedBatches = Loader::kSlots + 1;  // and the one being evaluated
constexpr std::int64_t kLeftOver = 8;  // divisor: an eighth of a device's free memory stays free

std::int64_t state_arrays(const api::TrainingConfig& config) {
  const OptimizerStates states = states_of(config);
  return (states.first ? 1 : 0) + (states.second ? 1 : 0);
}

// Rank 0's shard, the largest; nullopt: the optimiser is not sharded.
std::optional<Range> largest_shard(const api::TrainingConfig& config, const NetworkPlan& plan,
                                   std::int64_t world_size) {
  if (world_size == 1 || !config.shard_optimizer.value_or(false)) return std::nullopt;
  return Range{0, shard_bounds(plan, config.optimizer, world_size)[1]};
}

std::int64_t master_count(const NetworkPlan& plan, const std::optional<Range>& shard,
                          kernels::DataType type) {
  const std::optional<Range> kept = masters_kept(plan, shard, type);
  // A shard of the decayed parameters; every worker has all the others.
  return kept ? kept->size() + plan.parameters - plan.decayed : plan.parameters;
}

constexpr std::int64_t kIndex = sizeof(std::int64_t);  // of a sample of a batch

// Bytes of one sample of a batch, without its index.
std::int64_t batch_bytes(const NetworkPlan& plan, std::int64_t element) {
  constexpr auto kId = static_cast<std::int64_t>(sizeof(std::int32_t));
  return plan.input.size() * (plan.tokens ? kId : element) + plan.predictions() * kId;
}

// Adds the batches' memory on host and device. `batch`: bytes of one sample without its index.
void add_batches(std::int64_t batch, std::int64_t data_bytes, MemoryPlan& memory) {
  const std::int64_t whole = batch + kIndex;
  constexpr std::int64_t kPlaces = kernels::UploadBuffers::kPlaces;  // each is on both sides
  // A part: name, fixed bytes, bytes for each sample held at once.
  switch (memory.data) {
    case DataPlace::kShared:
      memory.parts.push_back({"batches", 0, kLoadedBatches * whole, /*on_host=*/true});
      return;
    case DataPlace::kStreamed:
      memory.parts.push_back({"batches", 0, (kLoadedBatches + kPlaces) * whole, /*on_host=*/true});
      memory.parts.push_back({"staged_batches", 0, kPlaces * whole, /*on_host=*/false});
      return;
    case DataPlace::kHeld:
      // The host names samples, the device gathers one batch of them.
      memory.parts.push_back({"batches", 0, (Loader::kSlots + kPlaces) * kIndex, /*on_host=*/true});
      memory.parts.push_back({"staged_batches", 0, batch + kPlaces * kIndex, /*on_host=*/false});
      memory.parts.push_back({"data", data_bytes, 0, /*on_host=*/false});
      return;
  }
}

// "2 GiB of memory; 1.5 GiB are there, 512 MiB too little".
std::string lacking(std::int64_t needed, std::int64_t there, const std::string& memory) {
  const auto text = [](std::int64_t bytes) {
    return machine::bytes_text(static_cast<double>(bytes));
  };
  return text(needed) + " of " + memory + "; " + text(there) + " are there, " +
         text(needed - there) + " too little";
}

std::int64_t checkpoint_bytes(const api::TrainerConfig& config, const NetworkPlan& plan) {
  Checkpoint empty;
  empty.layout = layout_of(plan);
  empty.settings = settings_of(config, 0);
  empty.data = to_json(fingerprint_of(ImageSet(), {}, nullptr));
  const std::int64_t floats =
      plan.parameters * (1 + state_arrays(config.training)) + plan.statistics;
  return std::ssize(encode_checkpoint(empty)) + floats * kFloat;
}

}  // namespace

TeacherMemory memory_of_teacher(const NetworkPlan& teacher, api::Precision precision) {
  const kernels::DataType type = data_type(precision);
  const std::int64_t element = kernels::size_of(type);
  const std::int64_t rounded = type == kernels::DataType::kFloat32 ? 0 : element;
  return {(master_count(teacher, Range{}, type) + teacher.statistics) * kFloat +
              teacher.parameters * rounded,
          plan_forward(teacher).elements * element};
}

TrainingWorld world_of(const TrainingData& data, std::int64_t world_size, bool keeps_checkpoints) {
  return {world_size, std::ssize(data.split.train), data.images.bytes(), keeps_checkpoints, {}};
}

std::string_view to_string(DataPlace place) {
  switch (place) {
    case DataPlace::kShared:
      return "on the host";
    case DataPlace::kStreamed:
      return "on the host, streamed to the device";
    case DataPlace::kHeld:
      return "on the device";
  }
  return "";
}

std::int64_t MemoryPlan::total() const {
  std::int64_t bytes = 0;
  for (const MemoryPart& part : parts) bytes += is_of_backend(part) ? bytes_of(part) : 0;
  return bytes;
}

std::int64_t MemoryPlan::host_total() const {
  std::int64_t bytes = 0;
  for (const MemoryPart& part : parts) bytes += is_of_backend(part) ? 0 : bytes_of(part);
  return bytes;
}

bool MemoryPlan::has_workspaces() const {
  return std::ranges::any_of(parts, &MemoryPart::is_workspace);
}

std::optional<std::int64_t> MemoryPlan::samples_fitting(std::int64_t bytes) const {
  std::int64_t fixed = 0;
  std::int64_t each = 0;
  std::int64_t workspaces = 0;
  for (const MemoryPart& part : parts) {
    if (!is_of_backend(part)) continue;
    (part.is_workspace ? workspaces : fixed) += part.fixed;
    each += part.per_sample;
  }
  if (fixed + workspaces + each > bytes) return std::nullopt;
  // Up to the planned number of samples the workspaces count in full; beyond, in proportion.
  const std::int64_t fitting = (bytes - fixed - workspaces) / each;
  if (fitting <= samples || workspaces == 0) return fitting;
  const std::int64_t workspace_each = (workspaces + samples - 1) / samples;
  // Never below the planned number, which fits with its workspaces in full.
  return std::max(samples, (bytes - fixed) / (each + workspace_each));
}

StepShape plan_step(const api::TrainerConfig& config, const TrainingWorld& world) {
  api::TrainingConfig training = config.training;
  api::fill_in_defaults(training, training.epochs.value_or(1));
  StepShape step;
  step.configured_batch = global_batch_of(training, world.world_size);
  step.global_batch =
      std::min(step.configured_batch, std::max<std::int64_t>(world.train_samples, 1));
  const std::int64_t group = norm_group_of(config, step.global_batch);
  step.dealing = {world.world_size, /*rank=*/0,
                  max_samples_of(training, group, step.global_batch, world.world_size), group};
  step.accumulation = accumulation_steps(step.global_batch, step.dealing);
  return step;
}

MemoryPlan plan_memory(const api::TrainerConfig& config, const NetworkPlan& plan,
                       const TrainingWorld& world, DataPlace data, const Workspaces& workspaces) {
  const kernels::DataType type = data_type(config.training.precision);
  const std::int64_t element = kernels::size_of(type);
  const std::int64_t rounded = type == kernels::DataType::kFloat32 ? 0 : element;
  const ActivationPlan activations = plan_activations(plan, config.training.recompute);
  const std::optional<Range> shard = largest_shard(config.training, plan, world.world_size);
  const std::int64_t with_state = shard ? shard->size() : plan.parameters;
  MemoryPlan memory;
  memory.data = data;
  memory.samples = plan_step(config, world).dealing.limit;
  memory.checkpoint_file = checkpoint_bytes(config, plan);
  memory.parts = {
      // name, fixed bytes, bytes for each sample
      {"parameters", master_count(plan, shard, type) * kFloat, 0},
      {"rounded_copies", plan.parameters * rounded, 0},
      // One array holds all values that a step sums over the workers (Parameters::gradients).
      {"gradients", (plan.parameters + plan.statistics + kStepSums) * kFloat, 0},
      {"optimizer_state", with_state * state_arrays(config.training) * kFloat, 0},
      // Statistics of the micro-batch under way, those from before the step, and a spare.
      {"statistics", (activations.repeated > 0 ? 3 : 2) * plan.statistics * kFloat, 0},
      // Includes their gradients.
      {"activations", 0, activations.elements * element},
  };
  if (plan.trains_quantized()) memory.parts.push_back({"weight_grids", plan.decayed * element, 0});
  if (world.int8_network > 0) memory.parts.push_back({"int8_network", world.int8_network, 0});
  if (config.training.prune) {
    memory.parts.push_back(
        {"prune_mask", plan.decayed / kernels::kMaskBits * std::int64_t{sizeof(std::uint16_t)}, 0});
  }
  if (world.teacher.fixed > 0) {
    memory.parts.push_back({"teacher", world.teacher.fixed, world.teacher.per_sample});
  }
  if (world.keeps_checkpoints) {  // it is written from a copy of its content
    memory.parts.push_back({"checkpoint_copy", memory.checkpoint_file, 0, /*on_host=*/true});
  }
  add_batches(batch_bytes(plan, element), world.data_bytes, memory);
  if (workspaces) {
    const auto add = [&memory](std::string_view name, std::int64_t bytes) {
      memory.parts.push_back({name, bytes, 0, /*on_host=*/false, /*is_workspace=*/true});
    };
    add("shared_workspace", workspaces->shared);
    add("branch_workspace", workspaces->branch);
    add("layer_workspaces", workspaces->own);
  }
  return memory;
}

DataPlace place_data(const api::TrainerConfig& config, const NetworkPlan& plan,
                     const TrainingWorld& world, const AvailableMemory& available,
                     const Workspaces& workspaces) {
  if (!available.has_device) return DataPlace::kShared;
  if (!available.device) return DataPlace::kHeld;  // unknown: assumed to fit
  const std::int64_t needed =
      plan_memory(config, plan, world, DataPlace::kHeld, workspaces).total();
  return needed <= *available.device - *available.device / kLeftOver ? DataPlace::kHeld
                                                                     : DataPlace::kStreamed;
}

Status check_memory(const api::TrainerConfig& config, const MemoryPlan& plan,
                    const AvailableMemory& available) {
  if (plan.host_total() > available.host) {
    return invalid("beside the GPU the training needs at least " +
                   lacking(plan.host_total(), available.host, "memory") + "; a smaller training." +
                   (api::mixes_samples(config) ? "normGroup" : "maxPerWorker") + " needs less");
  }
  const std::optional<std::int64_t> free = plan.has_device() ? available.device : available.host;
  if (!free || plan.total() <= *free) return success();  // unknown: assumed to fit
  // The operator finds the number by the words around it, and requests more memory for the next run
  // (runtime/kubernetes/job/gpu_memory_end.cpp).
  const std::string number =
      api::kGpuMemoryShort + std::to_string(plan.total()) + api::kGpuMemoryNeeded + ": ";
  const std::string found =
      (plan.has_device() ? number : "") + "the training needs at least " +
      lacking(plan.total(), *free,
              std::string(plan.has_device() ? "the GPU's memory" : "memory") + ", with " +
                  std::to_string(plan.samples) + " samples held at once");
  const auto fitting = plan.samples_fitting(*free);
  if (!fitting) return invalid(found + ", too little even for one sample; use a smaller model");
  if (api::mixes_samples(config)) {
    return invalid(found + "; training.normGroup up to " + std::to_string(*fitting) +
                   " fits (it changes what batchNorm takes its statistics over" +
                   (api::trains_quantized(config.training) ? ", and quantize its ranges)" : ")"));
  }
  return invalid(found + "; training.maxPerWorker up to " + std::to_string(*fitting) +
                 " fits, and changes nothing but the speed");
}

}  // namespace fettle::trainer
