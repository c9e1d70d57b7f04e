// GradientAllReduce: sums a step's gradients over GPUs, while the backward pass of its last
// micro-batch is still running. The GPU counterpart of GradientSum, without a thread: events keep
// the order.
//
// An event is recorded in the pass (or in its graph) when a message's gradients are complete, and
// the message's all-reduce is enqueued on the communicator's stream behind it; the backend
// continues with the end of the step when all sums are there. A worker without samples in a step
// enqueues the same messages at its end, so the sums are the same bits. The host waits for nothing.
// One thread, the backend's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/parallel/collective.h"
#include "trainer/step/gradient_messages.h"

namespace fettle::trainer {

class GradientAllReduce {
 public:
  // `collective` and `backend` must outlive it; the backend must have events.
  GradientAllReduce(DeviceCollective& collective, kernels::Backend& backend,
                    GradientMessages messages);

  // Called in every backward pass: after each layer, from the last to the first, and at the end.
  // Part of the pass's graph.
  void layer_done(std::int64_t layer);
  void pass_done();
  // Called once the last pass of a step is enqueued: enqueues its early messages.
  void pass_enqueued(std::span<float> gradients);
  // Enqueues the remaining messages; work that the backend enqueues afterwards finds the sums.
  // Errors: a worker was lost.
  Status finish(std::span<float> gradients);

  // Enqueues an all-gather: every worker receives worker r's part of `values`, from bounds[r] on.
  Status gather(std::span<float> values, std::span<const std::int64_t> bounds);

  // Seconds that the backend has idled for the other workers in these calls. To be asked when the
  // results of all steps are there: a wait under way counts as zero.
  double waited();

 private:
  // One wait of the backend for enqueued collectives.
  struct Wait {
    std::unique_ptr<kernels::Event> wanted;  // the backend has nothing else to do
    std::unique_ptr<kernels::Event> over;
    bool enqueued = false;
  };
  // A step waits three times at most (for its gradients and, if the optimiser is sharded, for two
  // kinds of weights); the times are read when the step's result is.
  static constexpr std::size_t kWaits = 3 * (kernels::kResultsBehind + 1);

  Status enqueue_early(std::span<float> gradients);
  Wait& begin_wait();
  void count(Wait& wait);
  void await_all(Wait& wait);

  DeviceCollective& collective_;
  const GradientMessages messages_;
  std::vector<std::unique_ptr<kernels::Event>> complete_;  // one for each early message
  std::array<Wait, kWaits> waits_;                         // used in turn
  std::size_t waits_begun_ = 0;
  double waited_ = 0;
  std::size_t next_ = 0;  // early message of the pass under way
  bool early_enqueued_ = false;
  Status status_ = success();  // of pass_enqueued()
};

}  // namespace fettle::trainer
