// TrainingDevice: a backend, and what one training leaves on it for the next.
//
// Whenever workers are lost, leave or come, the others train on in a new epoch of their membership,
// each with a new Training. What is expensive to make again stays here: the backend itself, the
// network with its memory and with what its operations have planned (a library of a GPU compiles
// some plans for seconds), and the samples that the backend holds.
// One thread. Outlives the trainings and networks on it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batching.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network.h"

namespace fettle::trainer {

class TrainingDevice {
 public:
  explicit TrainingDevice(std::unique_ptr<kernels::Backend> backend)
      : backend_(std::move(backend)) {}
  // With the backend that the configuration names. Errors: it is not there.
  static Result<std::unique_ptr<TrainingDevice>> open(const api::TrainingConfig& config);
  TrainingDevice(const TrainingDevice&) = delete;
  TrainingDevice& operator=(const TrainingDevice&) = delete;

  kernels::Backend& backend() { return *backend_; }

  // What Network::create gives: the network from before, restarted, if it has the same plan and
  // options, else a new one in its place. Valid until the next call. Errors: as there; then there
  // is none.
  Result<Network*> network(const NetworkPlan& plan, const kernels::PlanOptions& options,
                           std::uint64_t seed, bool recompute, const std::optional<Range>& shard);

  // What the operations of such a network need beside its parameters and activations; absent where
  // the memory is the host's. Found out once for the same plan and options; nothing is allocated.
  // Errors: a layer that the backend cannot run.
  Result<std::optional<kernels::Workspace>> workspace(const NetworkPlan& plan,
                                                      const kernels::PlanOptions& options);

  // Whether the last network() gave the one from before.
  bool reused_network() const { return reused_; }

  // The samples of `images` in the backend's memory; a second call for the same set copies nothing.
  // Valid until another set is held. Errors: too little memory.
  Result<kernels::Samples> hold(const ImageSet& images);
  void release_samples();

  // Bytes of the backend's own memory that the network, the workspace of its operations and the
  // samples take; 0 where it is the host's. The next training may use them again.
  std::int64_t kept_bytes() const { return network_bytes_ + workspace_bytes_ + sample_bytes_; }

 private:
  std::int64_t free_memory() const { return backend_->free_memory().value_or(0); }

  const std::unique_ptr<kernels::Backend> backend_;  // first: all else is in its memory
  std::unique_ptr<Network> network_;
  std::string layout_;  // of the network: what its weights are
  bool recompute_ = false;
  bool reused_ = false;
  std::int64_t network_bytes_ = 0;
  std::int64_t workspace_bytes_ = 0;  // of the blocks that operations use in turn; only grow
  // What workspace() was asked for last, and found.
  std::string asked_layout_;
  kernels::PlanOptions asked_options_;
  std::optional<kernels::Workspace> workspace_;
  const ImageSet* held_ = nullptr;
  kernels::DeviceArray<std::uint8_t> pixels_;
  kernels::DeviceArray<std::int32_t> labels_;
  std::int64_t sample_bytes_ = 0;
};

}  // namespace fettle::trainer
