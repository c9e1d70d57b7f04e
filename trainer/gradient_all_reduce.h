// GradientAllReduce: sums a step's gradients over GPUs, while the backward pass of its last
// micro-batch is still running. What GradientSum is on CPUs, without a thread: events keep the
// order.
//
// An event is recorded in the pass (or in its graph) where a message's gradients are complete, and
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
#include "trainer/collective.h"
#include "trainer/gradient_messages.h"

namespace fettle::trainer {

class GradientAllReduce {
 public:
  // `collective` and `backend`, which has events, must outlive it.
  GradientAllReduce(DeviceCollective& collective, kernels::Backend& backend,
                    GradientMessages messages);

  // In every backward pass, from the last layer to the first, and at its end. Part of its
  // graph.
  void layer_done(std::int64_t layer);
  void pass_done();
  // The last pass of a step was enqueued: now its early messages can be, too.
  void pass_enqueued(std::span<float> gradients);
  // Enqueues what is left; work that the backend enqueues afterwards finds the sums. Errors: a
  // worker was lost.
  Status finish(std::span<float> gradients);

  // Enqueues: worker r's part of `values`, from bounds[r] on, comes to all.
  Status gather(std::span<float> values, std::span<const std::int64_t> bounds);

  // Seconds that the backend has stood still for the others' part in all this. To be asked when the
  // results of all steps are there: what is still under way counts as nothing.
  double waited();

 private:
  // The backend continues when all that was enqueued is done.
  struct Wait {
    std::unique_ptr<kernels::Event> wanted;  // nothing else is left to do
    std::unique_ptr<kernels::Event> over;
    bool enqueued = false;
  };
  // A step waits three times at most (for its gradients, and for two kinds of weights where the
  // optimiser is sharded), and what it left is read when its result is.
  static constexpr std::size_t kWaits = 3 * (kernels::kResultsBehind + 1);

  Status enqueue_early(std::span<float> gradients);
  Wait& begin_wait();
  void count(Wait& wait);
  void await_all(Wait& wait);

  DeviceCollective& collective_;
  const GradientMessages messages_;
  std::vector<std::unique_ptr<kernels::Event>> complete_;  // one an early message
  std::array<Wait, kWaits> waits_;                         // in turn
  std::size_t waits_begun_ = 0;
  double waited_ = 0;
  std::size_t next_ = 0;  // of the pass under way
  bool early_enqueued_ = false;
  Status status_ = success();  // of pass_enqueued()
};

}  // namespace fettle::trainer
