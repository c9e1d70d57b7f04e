#include "trainer/step/gradient_all_reduce.h"

#include <algorithm>
#include <utility>

namespace fettle::trainer {
namespace {

std::span<float> part_of(std::span<float> gradients, const Range& values) {
  return gradients.subspan(static_cast<std::size_t>(values.begin),
                           static_cast<std::size_t>(values.size()));
}

}  // namespace

GradientAllReduce::GradientAllReduce(DeviceCollective& collective, kernels::Backend& backend,
                                     GradientMessages messages)
    : collective_(collective), messages_(std::move(messages)) {
  for (Wait& wait : waits_) wait = {backend.event(), backend.event()};
  for (std::size_t i = 0; i < messages_.early.size(); ++i) complete_.push_back(backend.event());
}

void GradientAllReduce::layer_done(std::int64_t layer) {
  // Early messages are in the order of the backward pass: from the last layer to the first.
  while (next_ < complete_.size() && messages_.early[next_].layer >= layer) {
    complete_[next_++]->record();
  }
}

void GradientAllReduce::pass_done() {
  layer_done(0);
  next_ = 0;  // the next pass records the same events again
}

void GradientAllReduce::pass_enqueued(std::span<float> gradients) {
  status_ = enqueue_early(gradients);
  early_enqueued_ = true;
}

Status GradientAllReduce::enqueue_early(std::span<float> gradients) {
  for (std::size_t i = 0; i < complete_.size(); ++i) {
    const std::span<float> values = part_of(gradients, messages_.early[i].values);
    FETTLE_TRY(collective_.enqueue_all_reduce(values, *complete_[i]));
  }
  return success();
}

Status GradientAllReduce::finish(std::span<float> gradients) {
  Wait& wait = begin_wait();  // wanted: reached when all work enqueued so far is done
  if (std::exchange(early_enqueued_, false)) {
    FETTLE_TRY(std::exchange(status_, success()));  // the error of pass_enqueued(), if any
  } else {
    // This worker had no batch in the step, so nothing was enqueued early.
    for (const EarlyMessage& message : messages_.early) {
      FETTLE_TRY(collective_.enqueue_all_reduce(part_of(gradients, message.values), *wait.wanted));
    }
  }
  FETTLE_TRY(collective_.enqueue_all_reduce(part_of(gradients, messages_.rest), *wait.wanted));
  await_all(wait);
  return success();
}

Status GradientAllReduce::gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  Wait& wait = begin_wait();
  FETTLE_TRY(collective_.enqueue_all_gather(values, bounds, *wait.wanted));
  await_all(wait);
  return success();
}

GradientAllReduce::Wait& GradientAllReduce::begin_wait() {
  Wait& wait = waits_[waits_begun_++ % kWaits];
  count(wait);
  wait.wanted->record();
  return wait;
}

void GradientAllReduce::count(Wait& wait) {
  if (!std::exchange(wait.enqueued, false)) return;
  waited_ += std::max(0.0, wait.over->seconds_since(*wait.wanted));
}

double GradientAllReduce::waited() {
  for (Wait& wait : waits_) count(wait);
  return waited_;
}

void GradientAllReduce::await_all(Wait& wait) {
  collective_.record(*wait.over);
  wait.over->wait();
  wait.enqueued = true;
}

}  // namespace fettle::trainer
