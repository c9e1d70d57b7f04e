// GradientSum: sums a step's gradients over the workers, while the backward pass of its last
// micro-batch is still under way.
//
// A separate thread sends each early message as soon as its layers are done, always in the plan's
// order; finish() sends the rest. A worker that has no samples in a step, or whose gradients lie in
// other memory, sends all messages there: they are the same, so the sums are the same bits.
// Used from one thread. From the first layer_done() of a step to the end of finish() the collective
// (and the membership below it) belongs to this object.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>

#include "base/result.h"
#include "trainer/parallel/collective.h"
#include "trainer/step/gradient_messages.h"

namespace fettle::trainer {

class GradientSum {
 public:
  // `collective` must outlive it.
  GradientSum(Collective& collective, GradientMessages messages);
  // Waits for the message under way.
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // The step's gradients of this layer and of all later ones are complete. `gradients`: all of
  // them, in host memory that stays valid until finish() has returned.
  void layer_done(std::int64_t layer, std::span<float> gradients);

  // Returns when all gradients are summed. Errors: a worker was lost, and the gradients are
  // unusable.
  Status finish(std::span<float> gradients);

  const GradientMessages& messages() const { return messages_; }

 private:
  void run();
  Status send(const Range& values, std::span<float> gradients);
  // Waits until no message is under way; returns the number of early messages sent.
  Result<std::size_t> await_sent();

  Collective& collective_;
  const GradientMessages messages_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<float> gradients_;  // guarded by mutex_, as all members below
  std::size_t complete_ = 0;    // early messages whose gradients are complete
  std::size_t sent_ = 0;        // early messages sent or, after an error, given up
  Status status_ = success();   // of this step's messages
  bool stopping_ = false;

  std::thread thread_;  // starts with the first early message
};

}  // namespace fettle::trainer
