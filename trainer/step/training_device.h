// TrainingDevice: a backend, and the state that one training leaves on it for the next.
//
// Whenever workers are lost, leave or join, the others continue in a new epoch of their membership,
// each with a new Training. Objects that are expensive to make again stay here: the backend, the
// network with its memory and the plans of its operations (a GPU library compiles some plans for
// seconds), and the samples that the backend holds.
// One thread. Outlives the trainings and networks on it.
// Beside it: the backend of a configuration, and the memory available to a training.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batching.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network.h"
#include "trainer/step/memory_plan.h"

namespace fettle::trainer {

// The backend that the configuration names; with `auto` the fastest of this machine. Errors: it is
// not available, with the reason.
Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config);

// For one of a worker's `processes` processes.
AvailableMemory available_memory(const kernels::Backend& backend, std::int64_t processes);
// The same if the configuration's backend is not here: nothing is known about its GPU.
AvailableMemory available_memory(const api::TrainingConfig& config, std::int64_t processes);

class TrainingDevice;

// Workspace of a training's networks, which use it in turn. `teacher` may be nullptr.
// Errors: a layer that the backend cannot run.
Result<std::optional<kernels::Workspace>> workspaces_of(TrainingDevice& device,
                                                        const NetworkPlan& plan,
                                                        const NetworkPlan* teacher,
                                                        const kernels::PlanOptions& options);

class TrainingDevice {
 public:
  explicit TrainingDevice(std::unique_ptr<kernels::Backend> backend)
      : backend_(std::move(backend)) {}
  // Opens the backend that the configuration names. Errors: it is not available.
  static Result<std::unique_ptr<TrainingDevice>> open(const api::TrainingConfig& config);
  TrainingDevice(const TrainingDevice&) = delete;
  TrainingDevice& operator=(const TrainingDevice&) = delete;

  kernels::Backend& backend() { return *backend_; }

  // As Network::create: the previous network, restarted, if it has the same plan and options, else
  // a new network in its place. Valid until the next call. Errors: as there; no network remains
  // then.
  Result<Network*> network(const NetworkPlan& plan, const kernels::PlanOptions& options,
                           std::uint64_t seed, bool recompute, const std::optional<Range>& shard);

  // Workspace of such a network's operations, beside its parameters and activations; absent if the
  // backend uses host memory. Determined once for the same plan and options; nothing is allocated.
  // Errors: a layer that the backend cannot run.
  Result<std::optional<kernels::Workspace>> workspace(const NetworkPlan& plan,
                                                      const kernels::PlanOptions& options);

  // Reserves workspace for several networks that are used in turn: call it before they are made.
  // Errors: too little memory.
  Status reserve(const kernels::Workspace& needed);

  // Whether the last network() call returned the previous network.
  bool reused_network() const { return reused_; }

  // Copies the samples of `images` to the backend's memory; a second call for the same set copies
  // nothing. Valid until another set is held. Errors: too little memory.
  Result<kernels::Samples> hold(const ImageSet& images);
  void release_samples();

  // Bytes of the backend's own memory that the network, the workspace of its operations and the
  // samples take; 0 if the backend uses host memory. The next training may use them again.
  std::int64_t kept_bytes() const { return network_bytes_ + workspace_bytes_ + sample_bytes_; }

 private:
  std::int64_t free_memory() const { return backend_->free_memory().value_or(0); }

  const std::unique_ptr<kernels::Backend> backend_;  // first: all else is in its memory
  std::unique_ptr<Network> network_;
  NetworkPlan plan_;  // of the network
  bool recompute_ = false;
  bool reused_ = false;
  std::int64_t network_bytes_ = 0;
  std::int64_t workspace_bytes_ = 0;  // of the blocks that operations use in turn; never shrink
  // Arguments and result of the last workspace() call.
  NetworkPlan asked_plan_;
  kernels::PlanOptions asked_options_;
  std::optional<kernels::Workspace> workspace_;
  std::uint64_t held_ = 0;  // the serial number of the set that is held; 0 = none
  kernels::DeviceArray<std::uint8_t> pixels_;
  kernels::DeviceArray<std::int32_t> labels_;
  std::int64_t sample_bytes_ = 0;
};

}  // namespace fettle::trainer
