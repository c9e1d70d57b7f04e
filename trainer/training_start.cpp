#include "trainer/training_start.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/checkpoint/identity.h"
#include "trainer/files/start_weights.h"
#include "trainer/rank0_work.h"

namespace fettle::trainer {
namespace {

Json settings_of(const TrainingTask& task) {
  return trainer::settings_of(task.config, task.seed, task.files);
}

std::string count_text(double count) { return std::to_string(static_cast<std::int64_t>(count)); }

// The data's file names, for the message that reports a difference.
std::string files_of(const api::DataConfig& data) {
  return is_text(data) ? data.train_text : data.train_images + ", " + data.train_labels;
}

// Describes how this worker's data differ from rank 0's fingerprint `rank0`; "": they are equal.
std::string difference_from(const std::string& rank0, const DataFingerprint& mine) {
  if (rank0 == to_json(mine).dump()) return "";
  const Result<Json> parsed = parse_json(rank0);
  const DataFingerprint there = parsed.ok() ? read_fingerprint(*parsed) : DataFingerprint{};
  if (std::string train = difference_of_sets(there.train, mine.train); !train.empty()) {
    return train;
  }
  if (there.test != mine.test) {
    const std::string test = difference_of_sets(there.test, mine.test);
    return "the test set: " + (test.empty() ? "one of the two has none" : test);
  }
  return "the same samples are normalised otherwise";
}

}  // namespace

// All workers learn which rank differs, so all end alike; the trial reports rank 0's message.
Status agree_on_data(const api::DataConfig& config, const TrainingData& data,
                     Collective& collective) {
  const auto world = static_cast<std::size_t>(collective.world_size());
  if (world == 1) return success();
  std::string rank0 = to_json(data.fingerprint).dump();
  FETTLE_TRY(broadcast_bytes(collective, rank0));
  const std::string different = difference_from(rank0, data.fingerprint);
  std::vector<double> differs(world);
  std::vector<double> samples(world);
  const auto mine = static_cast<std::size_t>(collective.rank());
  differs[mine] = different.empty() ? 0 : 1;
  samples[mine] = static_cast<double>(data.images.size());
  FETTLE_TRY(collective.sum(std::span(differs)));
  FETTLE_TRY(collective.sum(std::span(samples)));
  const auto found = std::ranges::find(differs, 1.0);
  if (found == differs.end()) return success();
  const auto other = static_cast<std::size_t>(found - differs.begin());
  const std::string counts =
      samples[other] == samples[0]
          ? "as many samples with other content"
          : count_text(samples[other]) + " samples, rank 0 has " + count_text(samples[0]);
  return invalid("rank " + std::to_string(other) +
                 " reads other data than rank 0: " + (other == mine ? different : counts) +
                 "; all workers must read the same files (" + files_of(config) + ")");
}

namespace {

// A parent may be trained on the grids of 8-bit integers and its child not yet, or the other way
// round: ranges lie behind the other statistics, and 0 stands for none.
void fit_ranges(const NetworkPlan& plan, const api::TrainingConfig& config,
                Checkpoint& checkpoint) {
  const auto first = std::ranges::find(plan.layers, api::LayerType::kQuantize, &LayerPlan::type);
  const std::int64_t others = first == plan.layers.end() ? plan.statistics : first->range.offset;
  const bool uses = api::trains_quantized(config) &&
                    checkpoint.position.epoch >= api::quantized_from(config) &&
                    std::ssize(checkpoint.statistics) == plan.statistics;
  if (uses || std::ssize(checkpoint.statistics) < others) return;
  checkpoint.statistics.resize(static_cast<std::size_t>(others));
  checkpoint.statistics.resize(static_cast<std::size_t>(plan.statistics));
}

}  // namespace

Result<TrainingState> TrainingStart::restore(const std::optional<Checkpoint>& from) {
  Start start = std::optional<Checkpoint>();
  FETTLE_TRY(
      do_at_rank0(parts_.collective, {.what = "reads the checkpoint that the training starts from",
                                      .work = [&] { start = from ? Start(from) : from_disk(); },
                                      .log = parts_.hooks.log}));
  if (parts_.collective.world_size() > 1) return share(std::move(start));
  if (!start.ok()) return start.error();
  return *start ? adopt(**start) : TrainingState{};
}

// All workers start from rank 0's bits, also without a checkpoint: math libraries may differ
// between machines. `start` is rank 0's; elsewhere it holds no checkpoint and is not read.
Result<TrainingState> TrainingStart::share(Start start) {
  // Rank 0's error goes first ("": success), so the others end with it instead of waiting.
  std::string error = start.ok() ? "" : start.error().message;
  FETTLE_TRY(broadcast_bytes(parts_.collective, error));
  if (!start.ok()) return start.error();
  if (!error.empty()) return invalid("rank 0 cannot begin: " + error);
  std::string bytes;
  if (parts_.collective.rank() == 0) {
    if (!*start) start = Start(from_seed());  // no checkpoint: the initial values
    bytes = encode_checkpoint(**start);
  }
  FETTLE_TRY(broadcast_bytes(parts_.collective, bytes));
  if (parts_.collective.rank() == 0) return adopt(**start);
  const std::string from = "what rank 0 starts from";
  FETTLE_ASSIGN(const Checkpoint checkpoint, decode_checkpoint(bytes, from));
  FETTLE_TRY(refuse_another_training(checkpoint, from));
  FETTLE_TRY(refuse_another_model(checkpoint, from));
  return adopt(checkpoint);
}

// Position, updates and loss scale keep a Checkpoint's defaults, which suit a new optimiser.
Checkpoint TrainingStart::from_seed() const {
  return beginning_with(initial_values(parts_.learner.network().plan(), parts_.task.seed));
}

Checkpoint TrainingStart::beginning_with(InitialValues values) const {
  Checkpoint fresh;
  fresh.layout = layout_of(parts_.learner.network().plan());
  fresh.settings = settings_of(parts_.task);
  fresh.data = to_json(parts_.data.fingerprint);
  fresh.weights = std::move(values.weights);
  fresh.statistics = std::move(values.statistics);
  OptimizerState state = parts_.learner.optimizer().fresh_state();
  fresh.state1 = std::move(state.first);
  fresh.state2 = std::move(state.second);
  return fresh;
}

Status TrainingStart::refuse_another_training(const Checkpoint& checkpoint,
                                              const std::string& from) const {
  const std::string different = difference(checkpoint.settings, settings_of(parts_.task));
  if (different.empty()) return refuse_other_data(checkpoint, from);
  return invalid(from + " belongs to another training: " + different);
}

// Other training samples would be split differently: samples already trained on would be held out.
// The test set may differ: nothing is learnt from it.
Status TrainingStart::refuse_other_data(const Checkpoint& checkpoint, const std::string& from,
                                        bool parents) const {
  const DataFingerprint there = read_fingerprint(checkpoint.data);
  const DataFingerprint& here = parts_.data.fingerprint;
  std::string different = difference_of_sets(there.train, here.train);
  const bool known = there.is_known() && here.is_known();
  if (different.empty() && known && !parents && there.normalize != here.normalize) {
    different = "the same samples are normalised otherwise";
  }
  if (different.empty()) return success();
  return invalid(from + " was trained on other data: " + different + "; put the files back (" +
                 files_of(parts_.task.config.data) + "), or start anew with new data");
}

Status TrainingStart::refuse_another_model(const Checkpoint& checkpoint,
                                           const std::string& from) const {
  const NetworkPlan& plan = parts_.learner.network().plan();
  const std::string layout = layout_of(plan);  // ends with "; "
  if (checkpoint.layout != layout) {
    return invalid(from + " belongs to another model: it has " + checkpoint.layout +
                   "this one has " + layout + "use another directory or remove it");
  }
  if (std::ssize(checkpoint.weights) == plan.parameters &&
      std::ssize(checkpoint.statistics) == plan.statistics) {
    return success();
  }
  return invalid(from + " has another number of parameters than the model");
}

TrainingStart::Start TrainingStart::from_disk() {
  FETTLE_ASSIGN(CheckpointStore::Found found, parts_.store.newest());
  for (const std::string& reason : found.skipped)
    parts_.hooks.log("skipped a checkpoint: " + reason);
  if (!found.checkpoint) return parts_.task.parent ? from_parent() : from_file();
  const Checkpoint& checkpoint = *found.checkpoint;
  if (Status other = refuse_another_training(checkpoint, found.path); !other.ok()) {
    return invalid(other.error().message + "; use another directory or remove it");
  }
  FETTLE_TRY(refuse_another_model(checkpoint, found.path));
  if (!parts_.learner.optimizer().fits(checkpoint.state1.size(), checkpoint.state2.size())) {
    return invalid(found.path +
                   " has another number of optimiser values than the model; remove it");
  }
  parts_.hooks.log("resumes from " + found.path);
  resumed_from_ = found.path;
  return std::move(found.checkpoint);
}

// The parent has reported the checkpoint, but it may not be visible from this machine yet.
Result<Checkpoint> TrainingStart::await_parent() const {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
  const CheckpointStore parents(parts_.task.parent->directory);
  const auto end = std::chrono::steady_clock::now() + parts_.task.parent_patience;
  for (bool said = false;; said = true) {
    auto found = parents.at_epoch(parts_.task.parent->step);
    const bool late = !found.ok() && found.error().code == ErrorCode::kNotFound &&
                      std::filesystem::is_directory(parts_.task.parent->directory);
    if (!late || parts_.hooks.should_stop() || std::chrono::steady_clock::now() >= end)
      return found;
    if (!said) parts_.hooks.log(found.error().message + " yet; waits for it");
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

TrainingStart::Start TrainingStart::from_parent() {
  FETTLE_ASSIGN(Checkpoint checkpoint, await_parent());
  fit_ranges(parts_.learner.network().plan(), parts_.task.config.training, checkpoint);
  FETTLE_TRY(refuse_another_model(checkpoint, parts_.task.parent->directory));
  FETTLE_TRY(refuse_other_data(checkpoint, parts_.task.parent->directory, /*parents=*/true));
  const Json settings = settings_of(parts_.task);
  const auto optimizer_of = [](const Json& all) {
    const Json* training = all.find("training");
    const Json* optimizer = training == nullptr ? nullptr : training->find("optimizer");
    return optimizer == nullptr ? Json() : *optimizer;
  };
  // A parent with another optimiser has other state: this trial's state then starts from zeros.
  const bool same_optimizer = optimizer_of(checkpoint.settings) == optimizer_of(settings);
  if (!same_optimizer ||
      !parts_.learner.optimizer().fits(checkpoint.state1.size(), checkpoint.state2.size())) {
    OptimizerState fresh = parts_.learner.optimizer().fresh_state();
    checkpoint.state1 = std::move(fresh.first);
    checkpoint.state2 = std::move(fresh.second);
    checkpoint.updates = 0;
    parts_.hooks.log("the parent's optimiser kept other state; this one's starts from zeros");
  }
  checkpoint.settings = settings;  // this trial's own; its checkpoints are compared with them
  checkpoint.data = to_json(parts_.data.fingerprint);
  parts_.hooks.log("starts from step " + std::to_string(parts_.task.parent->step) +
                   " of its parent");
  return std::optional(std::move(checkpoint));
}

TrainingStart::Start TrainingStart::from_file() {
  const auto& start = parts_.task.config.model.from;
  if (!start) return std::optional<Checkpoint>();
  const NetworkPlan& plan = parts_.learner.network().plan();
  InitialValues values = initial_values(plan, parts_.task.seed);
  FETTLE_ASSIGN(const std::string loaded, load_start_weights(*start, plan, values));
  parts_.hooks.log(loaded);
  return std::optional(beginning_with(std::move(values)));
}

// The arrays have this model's sizes: from_disk(), from_parent() and share() have
// compared them, or an earlier take_snapshot() of this task made them.
Result<TrainingState> TrainingStart::adopt(const Checkpoint& checkpoint) {
  Parameters& parameters = parts_.learner.network().parameters();
  FETTLE_TRY(parameters.set_weights(checkpoint.weights, parts_.learner.backend()));
  parameters.statistics.upload(checkpoint.statistics);
  parts_.learner.weights_changed();
  Optimizer& optimizer = parts_.learner.optimizer();
  optimizer.restore_state(checkpoint.state1, checkpoint.state2);
  optimizer.restore(checkpoint.updates, checkpoint.loss_scale);
  TrainingState state{
      .position = checkpoint.position, .sums = checkpoint.sums, .scores = {}, .int8_ranges = {}};
  for (const auto& [name, value] : checkpoint.metrics.as_object()) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();  // null in JSON
    state.scores.emplace_back(name, value.is_number() ? value.as_double() : kNaN);
  }
  state.int8_ranges = checkpoint.int8_ranges;
  return state;
}

Result<Checkpoint> take_snapshot(const TrainingParts& parts, const TrainingState& state) {
  FETTLE_ASSIGN(std::vector<float> weights, parts.learner.whole_weights());
  FETTLE_ASSIGN(OptimizerState optimizer, parts.learner.optimizer_state());
  Checkpoint checkpoint;
  if (parts.collective.rank() != 0) return checkpoint;
  checkpoint.layout = layout_of(parts.learner.network().plan());
  checkpoint.settings = settings_of(parts.task);
  checkpoint.data = to_json(parts.data.fingerprint);
  checkpoint.position = state.position;
  const kernels::StepControl& control = parts.learner.optimizer().control();
  checkpoint.updates = control.updates;
  checkpoint.sums = state.sums;
  checkpoint.loss_scale = control.loss_scale;
  for (const auto& [name, value] : state.scores) checkpoint.metrics.set(name, value);
  checkpoint.int8_ranges = state.int8_ranges;
  checkpoint.weights = std::move(weights);
  checkpoint.statistics = parts.learner.network().parameters().statistics.download();
  checkpoint.state1 = std::move(optimizer.first);
  checkpoint.state2 = std::move(optimizer.second);
  return checkpoint;
}

}  // namespace fettle::trainer
