// The start of a training: the newest checkpoint, a parent's, rank 0's memory or initial values;
// and the snapshot that the next training starts from.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "trainer/checkpoint/identity.h"
#include "trainer/rank0_work.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

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
Status Training::agree_on_data() {
  const auto world = static_cast<std::size_t>(collective_.world_size());
  if (world == 1) return success();
  std::string rank0 = to_json(data_.fingerprint).dump();
  FETTLE_TRY(broadcast_bytes(collective_, rank0));
  const std::string different = difference_from(rank0, data_.fingerprint);
  std::vector<double> differs(world);
  std::vector<double> samples(world);
  const auto mine = static_cast<std::size_t>(collective_.rank());
  differs[mine] = different.empty() ? 0 : 1;
  samples[mine] = static_cast<double>(data_.images.size());
  FETTLE_TRY(collective_.sum(std::span(differs)));
  FETTLE_TRY(collective_.sum(std::span(samples)));
  const auto found = std::ranges::find(differs, 1.0);
  if (found == differs.end()) return success();
  const auto other = static_cast<std::size_t>(found - differs.begin());
  const std::string counts =
      samples[other] == samples[0]
          ? "as many samples with other content"
          : count_text(samples[other]) + " samples, rank 0 has " + count_text(samples[0]);
  return invalid("rank " + std::to_string(other) +
                 " reads other data than rank 0: " + (other == mine ? different : counts) +
                 "; all workers must read the same files (" + files_of(task_.config.data) + ")");
}

Status Training::restore(const std::optional<Checkpoint>& from) {
  Start start = std::optional<Checkpoint>();
  FETTLE_TRY(
      do_at_rank0(collective_, {.what = "reads the checkpoint that the training starts from",
                                .work = [&] { start = from ? Start(from) : start_from_disk(); },
                                .log = hooks_.log}));
  if (collective_.world_size() > 1) return share(std::move(start));
  if (!start.ok()) return start.error();
  return *start ? adopt(**start) : success();
}

// All workers start from rank 0's bits, also without a checkpoint: math libraries may differ
// between machines. `start` is rank 0's; elsewhere it holds no checkpoint and is not read.
Status Training::share(Start start) {
  // Rank 0's error goes first ("": success), so the others end with it instead of waiting.
  std::string error = start.ok() ? "" : start.error().message;
  FETTLE_TRY(broadcast_bytes(collective_, error));
  if (!start.ok()) return start.error();
  if (!error.empty()) return invalid("rank 0 cannot begin: " + error);
  std::string bytes;
  if (collective_.rank() == 0) {
    if (!*start) start = Start(fresh_start());  // no checkpoint: the initial values
    bytes = encode_checkpoint(**start);
  }
  FETTLE_TRY(broadcast_bytes(collective_, bytes));
  if (collective_.rank() == 0) return adopt(**start);
  const std::string from = "what rank 0 starts from";
  FETTLE_ASSIGN(const Checkpoint checkpoint, decode_checkpoint(bytes, from));
  FETTLE_TRY(refuse_another_training(checkpoint, from));
  FETTLE_TRY(refuse_another_model(checkpoint, from));
  return adopt(checkpoint);
}

// Position, updates and loss scale keep a Checkpoint's defaults, which suit a new optimiser.
Checkpoint Training::fresh_start() const {
  const NetworkPlan& plan = learner_->network().plan();
  Checkpoint fresh;
  fresh.layout = layout_of(plan);
  fresh.settings = settings_of(task_.config, task_.seed);
  fresh.data = to_json(data_.fingerprint);
  InitialValues values = initial_values(plan, task_.seed);
  fresh.weights = std::move(values.weights);
  fresh.statistics = std::move(values.statistics);
  OptimizerState state = learner_->optimizer().fresh_state();
  fresh.state1 = std::move(state.first);
  fresh.state2 = std::move(state.second);
  return fresh;
}

Status Training::refuse_another_training(const Checkpoint& checkpoint,
                                         const std::string& from) const {
  const std::string different =
      difference(checkpoint.settings, settings_of(task_.config, task_.seed));
  if (different.empty()) return refuse_other_data(checkpoint, from);
  return invalid(from + " belongs to another training: " + different);
}

// Other training samples would be split differently: samples already trained on would be held out.
// The test set may differ: nothing is learnt from it.
Status Training::refuse_other_data(const Checkpoint& checkpoint, const std::string& from,
                                   bool parents) const {
  const DataFingerprint there = read_fingerprint(checkpoint.data);
  const DataFingerprint& here = data_.fingerprint;
  std::string different = difference_of_sets(there.train, here.train);
  const bool known = there.is_known() && here.is_known();
  if (different.empty() && known && !parents && there.normalize != here.normalize) {
    different = "the same samples are normalised otherwise";
  }
  if (different.empty()) return success();
  return invalid(from + " was trained on other data: " + different + "; put the files back (" +
                 files_of(task_.config.data) + "), or start anew with new data");
}

Status Training::refuse_another_model(const Checkpoint& checkpoint, const std::string& from) const {
  const NetworkPlan& plan = learner_->network().plan();
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

Training::Start Training::start_from_disk() {
  FETTLE_ASSIGN(CheckpointStore::Found found, store_.newest());
  for (const std::string& reason : found.skipped) hooks_.log("skipped a checkpoint: " + reason);
  if (!found.checkpoint) return task_.parent ? start_from_parent() : Start(std::nullopt);
  const Checkpoint& checkpoint = *found.checkpoint;
  if (Status other = refuse_another_training(checkpoint, found.path); !other.ok()) {
    return invalid(other.error().message + "; use another directory or remove it");
  }
  FETTLE_TRY(refuse_another_model(checkpoint, found.path));
  if (!learner_->optimizer().fits(checkpoint.state1.size(), checkpoint.state2.size())) {
    return invalid(found.path +
                   " has another number of optimiser values than the model; remove it");
  }
  hooks_.log("resumes from " + found.path);
  resumed_from_ = found.path;
  return std::move(found.checkpoint);
}

// The parent has reported the checkpoint, but it may not be visible from this machine yet.
Result<Checkpoint> Training::await_parent() const {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(500);
  const CheckpointStore parents(task_.parent->directory);
  const auto end = std::chrono::steady_clock::now() + task_.parent_patience;
  for (bool said = false;; said = true) {
    auto found = parents.at_epoch(task_.parent->step);
    const bool late = !found.ok() && found.error().code == ErrorCode::kNotFound &&
                      std::filesystem::is_directory(task_.parent->directory);
    if (!late || hooks_.should_stop() || std::chrono::steady_clock::now() >= end) return found;
    if (!said) hooks_.log(found.error().message + " yet; waits for it");
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Training::Start Training::start_from_parent() {
  FETTLE_ASSIGN(Checkpoint checkpoint, await_parent());
  FETTLE_TRY(refuse_another_model(checkpoint, task_.parent->directory));
  FETTLE_TRY(refuse_other_data(checkpoint, task_.parent->directory, /*parents=*/true));
  const Json settings = settings_of(task_.config, task_.seed);
  const auto optimizer_of = [](const Json& all) {
    const Json* training = all.find("training");
    const Json* optimizer = training == nullptr ? nullptr : training->find("optimizer");
    return optimizer == nullptr ? Json() : *optimizer;
  };
  // A parent with another optimiser has other state: this trial's state then starts from zeros.
  const bool same_optimizer = optimizer_of(checkpoint.settings) == optimizer_of(settings);
  if (!same_optimizer ||
      !learner_->optimizer().fits(checkpoint.state1.size(), checkpoint.state2.size())) {
    OptimizerState fresh = learner_->optimizer().fresh_state();
    checkpoint.state1 = std::move(fresh.first);
    checkpoint.state2 = std::move(fresh.second);
    checkpoint.updates = 0;
    hooks_.log("the parent's optimiser kept other state; this one's starts from zeros");
  }
  checkpoint.settings = settings;  // this trial's own; its checkpoints are compared with them
  checkpoint.data = to_json(data_.fingerprint);
  hooks_.log("starts from step " + std::to_string(task_.parent->step) + " of its parent");
  return std::optional(std::move(checkpoint));
}

// The arrays have this model's sizes: start_from_disk(), start_from_parent() and share() have
// compared them, or an earlier snapshot() of this task made them.
Status Training::adopt(const Checkpoint& checkpoint) {
  Parameters& parameters = learner_->network().parameters();
  FETTLE_TRY(parameters.set_weights(checkpoint.weights, learner_->backend()));
  parameters.statistics.upload(checkpoint.statistics);
  learner_->weights_changed();
  Optimizer& optimizer = learner_->optimizer();
  optimizer.restore_state(checkpoint.state1, checkpoint.state2);
  optimizer.restore(checkpoint.updates, checkpoint.loss_scale);
  position_ = checkpoint.position;
  sums_ = checkpoint.sums;
  scores_.clear();
  for (const auto& [name, value] : checkpoint.metrics.as_object()) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();  // null in JSON
    scores_.emplace_back(name, value.is_number() ? value.as_double() : kNaN);
  }
  return success();
}

Result<Checkpoint> Training::snapshot() const {
  FETTLE_ASSIGN(std::vector<float> weights, learner_->whole_weights());
  FETTLE_ASSIGN(OptimizerState state, learner_->optimizer_state());
  Checkpoint checkpoint;
  if (collective_.rank() != 0) return checkpoint;
  checkpoint.layout = layout_of(learner_->network().plan());
  checkpoint.settings = settings_of(task_.config, task_.seed);
  checkpoint.data = to_json(data_.fingerprint);
  checkpoint.position = position_;
  const kernels::StepControl& control = learner_->optimizer().control();
  checkpoint.updates = control.updates;
  checkpoint.sums = sums_;
  checkpoint.loss_scale = control.loss_scale;
  for (const auto& [name, value] : scores_) checkpoint.metrics.set(name, value);
  checkpoint.weights = std::move(weights);
  checkpoint.statistics = learner_->network().parameters().statistics.download();
  checkpoint.state1 = std::move(state.first);
  checkpoint.state2 = std::move(state.second);
  return checkpoint;
}

}  // namespace fettle::trainer
