#include "trainer/elastic_training.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/backends/cuda/loader.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/parallel/nccl_collective.h"
#include "trainer/parallel/ring_collective.h"

namespace fettle::trainer {
namespace {

// Enough for every worker to be lost once, and for some epochs in which only a connection was cut.
constexpr std::int64_t kMostBrokenEpochs = 2 * kMostRanks;
constexpr std::int64_t kMostSeconds = 24 * 3600;
// Workers start together, but pull images and read data at their own pace; a step with its
// micro-batches is shorter.
constexpr std::int64_t kMeetingSeconds = 300;
constexpr std::int64_t kCollectiveSeconds = 300;

struct Attempt {
  Result<Ending> ending;
  std::optional<Checkpoint> reached = {};  // at rank 0, unless training is over
  bool state_lost = false;                 // only the newest checkpoint is left
  bool progress = false;                   // a step was made, or the epoch ended as all had agreed
  bool ran = false;                        // it logged its starting point
};

bool is_loss(const Error& error) { return error.code == ErrorCode::kUnavailable; }

// The error if a sharded optimiser's state is lost and no checkpoint exists.
Error unsaved_state(const Error& loss) {
  return {loss.code, loss.message +
                         "; its part of the optimiser's state is lost with it, and without "
                         "checkpoints there is nothing to resume from"};
}

// The state that an ended `training` leaves to resume from.
Attempt attempt_of(const Training& training, Result<Ending> ending, bool shards, bool is_rank0) {
  Attempt attempt{std::move(ending)};
  attempt.ran = true;
  attempt.progress = attempt.ending.ok() || training.steps() > 0;  // for NextEpoch
  // With a sharded optimiser the lost worker's shard of the state is gone.
  attempt.state_lost = !attempt.ending.ok() && shards;
  const bool over = attempt.ending.ok() && *attempt.ending != Ending::kRegroups;
  if (attempt.state_lost || over) return attempt;
  Result<Checkpoint> reached = training.snapshot();
  if (!reached.ok()) {
    attempt.ending = reached.error();
    attempt.state_lost = true;
  } else if (is_rank0) {
    attempt.reached = *std::move(reached);
  }
  return attempt;
}

// Trains in one epoch of the membership; the first epoch opens the device. If it ends with an error
// or to regroup, rank 0 resumes from `reached` of the result: `from` again if training did not
// begin.
Attempt train_in_epoch(const TrainingTask& task, const TrainingData& data,
                       std::unique_ptr<TrainingDevice>& device, Collective& collective,
                       const TrainingHooks& hooks, const std::optional<Checkpoint>& from) {
  if (device == nullptr) {
    auto opened = TrainingDevice::open(task.config.training);
    if (!opened.ok()) return {opened.error(), from};
    device = *std::move(opened);
  }
  auto training = Training::create_on(*device, task, data, collective, hooks, from);
  if (!training.ok()) return {training.error(), from};
  Result<Ending> ending = (*training)->run();
  return attempt_of(**training, std::move(ending), (*training)->learner().shards_optimizer(),
                    collective.rank() == 0);
}

// All-reduces between GPUs if all workers have one, else over TCP.
Result<std::unique_ptr<Collective>> make_collective(const TrainingTask& task,
                                                    Membership& membership,
                                                    std::chrono::milliseconds timeout) {
  FETTLE_ASSIGN(auto ring, make_ring_collective(membership, timeout));
  const api::BackendKind backend = task.config.training.backend;
  if (backend != api::BackendKind::kAuto && backend != api::BackendKind::kCuda) return ring;
  auto maker = kernels::load_communicators(kernels::cuda_library_places());
  return make_nccl_collective(membership, std::move(ring), maker.ok() ? maker->get() : nullptr,
                              {.timeout = timeout});
}

// Runs one epoch of the membership, with its present workers. Every error hands `from` back, so
// that rank 0 can start from it again with the remaining workers.
Attempt meet_and_train(const TrainingTask& task, const TrainingData& data, const WorkerPlace& place,
                       std::unique_ptr<TrainingDevice>& device, Membership& membership,
                       const TrainingHooks& hooks, const std::optional<Checkpoint>& from) {
  hooks.log("rank " + std::to_string(membership.rank()) + " of " +
            std::to_string(membership.world_size()) + " workers");
  if (membership.world_size() == 1) {
    SingleProcess alone;
    return train_in_epoch(task, data, device, alone, hooks, from);
  }
  const auto collective = make_collective(task, membership, place.collective_time);
  if (!collective.ok()) return {collective.error(), from};
  return train_in_epoch(task, data, device, **collective, hooks, from);
}

// Rank 0 checks whether workers want to join; another worker that should stop asks to leave
// instead, if enough workers remain.
TrainingHooks hooks_of_open_world(const TrainingHooks& hooks, Membership& membership,
                                  std::int64_t least, bool& leaves) {
  TrainingHooks asked = hooks;
  if (membership.rank() == 0) {
    asked.should_regroup = [&membership] { return membership.somebody_waits(); };
  } else if (membership.world_size() > least) {
    asked.should_stop = [] { return false; };  // it would stop all workers
    asked.should_regroup = [&hooks, &leaves] { return leaves = leaves || hooks.should_stop(); };
  }
  return asked;
}

// This process was asked to end while the others did not answer, and SIGKILL is near: rank 0 saves
// the last step that all workers made, and no worker waits any longer.
Result<TrainingResult> stop_alone(const TrainingTask& task, const Attempt& attempt,
                                  std::int64_t rank, const TrainingHooks& hooks) {
  if (!attempt.ending.ok()) hooks.log(attempt.ending.error().message);
  TrainingResult result{.ending = Ending::kStopped};
  result.saved = rank == 0 && attempt.reached && !task.checkpoints.empty();
  if (!result.saved) return result;
  const CheckpointStore store(task.checkpoints, task.keep, task.fence);
  EpochReport report;
  FETTLE_ASSIGN(report.checkpoint, store.save(*attempt.reached));
  report.step = report.checkpoint_step = attempt.reached->position.epoch;
  hooks.report(report);
  return result;
}

}  // namespace

Result<std::optional<WorkerPlace>> place_of_worker(const Variable& variable, bool open) {
  FETTLE_ASSIGN(const std::int64_t world_size,
                whole_number(variable, "WORLD_SIZE", 1, kMostRanks, 1));
  const bool alone = variable("WORLD_SIZE") == nullptr || (world_size == 1 && !open);
  if (alone) return std::optional<WorkerPlace>();
  WorkerPlace place;
  RendezvousRequest& rendezvous = place.rendezvous;
  rendezvous.world_size = world_size;
  rendezvous.open = open;
  const std::int64_t most = (open ? kMostRanks : world_size) - 1;
  FETTLE_ASSIGN(rendezvous.rank, whole_number(variable, "RANK", 0, most));
  const char* const address = variable("MASTER_ADDR");
  if (address == nullptr || *address == '\0') {
    return invalid("MASTER_ADDR is not set, expected the host of rank 0 beside WORLD_SIZE");
  }
  rendezvous.master.host = address;
  FETTLE_ASSIGN(const std::int64_t port, whole_number(variable, "MASTER_PORT", 1, 65535));
  rendezvous.master.port = static_cast<std::uint16_t>(port);
  const char* const token = variable("FETTLE_RENDEZVOUS_TOKEN");
  if (token != nullptr) rendezvous.token = token;
  FETTLE_ASSIGN(const std::int64_t meeting, whole_number(variable, "FETTLE_RENDEZVOUS_SECONDS", 0,
                                                         kMostSeconds, kMeetingSeconds));
  FETTLE_ASSIGN(const std::int64_t collective, whole_number(variable, "FETTLE_COLLECTIVE_SECONDS",
                                                            1, kMostSeconds, kCollectiveSeconds));
  rendezvous.patient = meeting == 0;  // 0 seconds: no limit
  if (meeting > 0) rendezvous.meeting = std::chrono::seconds(meeting);
  // Later answers need no image pulls.
  rendezvous.timeout =
      std::chrono::seconds(meeting == 0 ? kMeetingSeconds : std::min(meeting, kMeetingSeconds));
  place.collective_time = std::chrono::seconds(collective);
  return std::optional(std::move(place));
}

Result<TrainingResult> train_elastically(const TrainingTask& task, const TrainingData& data,
                                         const WorkerPlace& place, std::int64_t least,
                                         const TrainingHooks& hooks) {
  RendezvousRequest request = place.rendezvous;
  request.should_stop = hooks.should_stop;
  hooks.log("waits for the other workers at " + to_string(request.master));
  const auto joined = Membership::join(request);
  if (!joined.ok() && hooks.should_stop()) {
    hooks.log(joined.error().message);
    return TrainingResult{.ending = Ending::kStopped, .began = false};
  }
  if (!joined.ok()) return joined.error();
  const std::unique_ptr<Membership>& membership = *joined;
  std::unique_ptr<TrainingDevice> device;  // for all epochs of the membership
  TrainingTask of_epoch = task;
  std::optional<Checkpoint> reached;
  bool leaves = false;  // set by the hooks: this worker stops, and the others continue
  for (std::int64_t losses_left = kMostBrokenEpochs;;) {
    const TrainingHooks asked =
        place.rendezvous.open ? hooks_of_open_world(hooks, *membership, least, leaves) : hooks;
    Attempt attempt = meet_and_train(of_epoch, data, place, device, *membership, asked, reached);
    of_epoch.new_process = of_epoch.new_process && !attempt.ran;
    const Result<Ending>& ending = attempt.ending;
    const auto is_told = [&request] {
      return request.termination.told && request.termination.told();
    };
    if (ending.ok() && *ending != Ending::kRegroups) return TrainingResult{*ending, /*left=*/false};
    if (!ending.ok()) {
      if (is_loss(ending.error()) && is_told()) {
        return stop_alone(task, attempt, membership->rank(), hooks);
      }
      const bool over = !is_loss(ending.error()) || membership->world_size() <= least;
      if (over || losses_left-- == 0) return ending.error();
      if (attempt.state_lost && task.checkpoints.empty()) return unsaved_state(ending.error());
      hooks.log(ending.error().message + "; the others continue" +
                (attempt.state_lost ? " from the newest checkpoint" : ""));
    }
    const Status formed = membership->form_next_epoch({least, leaves, attempt.progress});
    if (!formed.ok() && is_loss(formed.error()) && is_told()) {
      return stop_alone(task, attempt, membership->rank(), hooks);
    }
    if (!formed.ok()) return formed.error();
    reached = std::move(attempt.reached);  // only rank 0 has one; the others receive its state
    if (leaves) return TrainingResult{Ending::kStopped, /*left=*/true};
  }
}

}  // namespace fettle::trainer
