// GradientExchange: the exchange between the workers of a step: sums of gradients and, with a
// sharded optimiser, new weights. Between GPUs if these can (gradient_all_reduce.h), else over the
// hosts (gradient_sum.h).
//
// Gradients of a large network are sent while the step's last backward pass is still under way; a
// small network's share one message with all other sums of a step. Used from one thread. From
// the last pass of a step to the end of sum() no other code may use the collective or the
// membership.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/model/parameters.h"
#include "trainer/parallel/collective.h"
#include "trainer/step/gradient_all_reduce.h"
#include "trainer/step/gradient_sum.h"
#include "trainer/step/model_runner.h"
#include "trainer/step/optimizer_shards.h"
#include "trainer/trace/trace.h"

namespace fettle::trainer {

class GradientExchange {
 public:
  // `collective` and `network` must outlive it.
  GradientExchange(Collective& collective, kernels::Backend& backend, Network& network);

  // Receives the times of sums and gathers; nullptr: they are not taken.
  void set_trace(Trace* trace) { trace_ = trace; }

  // Sends gradients while the pass is under way. `last`: the pass is the step's last.
  PassHooks pass_hooks(bool last);
  // Called once the last pass of a step is enqueued.
  void last_pass_enqueued();
  // Sums the gradients, and all else that is in their array, over the workers. Errors: a worker was
  // lost.
  Status sum();

  // Sends each worker's shard of the new weights to all. Errors: as sum().
  Status gather_weights(const ShardBounds& shards);

  // Seconds spent in sums and gathers, including waits for other workers; between GPUs, seconds
  // that the GPU has idled for them.
  double seconds() { return all_reduce_ ? all_reduce_->waited() : seconds_; }
  // Error of the last all-reduce that was abandoned; success if none is known.
  Status health() { return gpus_ == nullptr ? success() : gpus_->health(); }
  // The GPUs note there that an all-reduce was abandoned; nullptr: the hosts all-reduce.
  const std::int32_t* given_up() const { return gpus_ == nullptr ? nullptr : gpus_->given_up(); }

 private:
  Status sum_gradients();
  Status gather(std::span<float> values, std::span<const std::int64_t> bounds);
  Parameters& parameters() { return network_.parameters(); }

  Collective& collective_;
  kernels::Backend& backend_;
  Network& network_;
  DeviceCollective* const gpus_;  // nullptr: the hosts all-reduce
  Trace* trace_ = nullptr;
  double seconds_ = 0;                           // by the host's clock
  std::optional<GradientAllReduce> all_reduce_;  // if the GPUs do, else sum_
  std::optional<GradientSum> sum_;               // last: its thread works on the gradients
};

}  // namespace fettle::trainer
