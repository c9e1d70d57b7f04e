#include "trainer/gradient_orders.h"

#include <algorithm>
#include <utility>

namespace fettle::trainer {
namespace {

std::span<float> part_of(std::span<float> gradients, const Range& values) {
  return gradients.subspan(static_cast<std::size_t>(values.begin),
                           static_cast<std::size_t>(values.size()));
}

}  // namespace

GradientOrders::GradientOrders(DeviceCollective& collective, kernels::Backend& backend,
                               GradientMessages messages)
    : collective_(collective), messages_(std::move(messages)) {
  for (Wait& wait : waits_) wait = {backend.moment(), backend.moment()};
  for (std::size_t i = 0; i < messages_.early.size(); ++i) complete_.push_back(backend.moment());
}

void GradientOrders::layer_done(std::int64_t layer) {
  while (next_ < complete_.size() && messages_.early[next_].layer >= layer) {
    complete_[next_++]->mark();
  }
}

void GradientOrders::pass_done() {
  layer_done(0);
  next_ = 0;
}

void GradientOrders::pass_ordered(std::span<float> gradients) {
  status_ = order_early(gradients);
  early_ordered_ = true;
}

Status GradientOrders::order_early(std::span<float> gradients) {
  for (std::size_t i = 0; i < complete_.size(); ++i) {
    const std::span<float> values = part_of(gradients, messages_.early[i].values);
    FETTLE_TRY(collective_.order_sum(values, *complete_[i]));
  }
  return success();
}

Status GradientOrders::finish(std::span<float> gradients) {
  Wait& wait = begin_wait();
  if (std::exchange(early_ordered_, false)) {
    FETTLE_TRY(std::exchange(status_, success()));
  } else {
    for (const EarlyMessage& message : messages_.early) {
      FETTLE_TRY(collective_.order_sum(part_of(gradients, message.values), *wait.wanted));
    }
  }
  FETTLE_TRY(collective_.order_sum(part_of(gradients, messages_.rest), *wait.wanted));
  await_all(wait);
  return success();
}

Status GradientOrders::gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  Wait& wait = begin_wait();
  FETTLE_TRY(collective_.order_all_gather(values, bounds, *wait.wanted));
  await_all(wait);
  return success();
}

GradientOrders::Wait& GradientOrders::begin_wait() {
  Wait& wait = waits_[waits_begun_++ % kWaits];
  count(wait);
  wait.wanted->mark();
  return wait;
}

void GradientOrders::count(Wait& wait) {
  if (!std::exchange(wait.ordered, false)) return;
  waited_ += std::max(0.0, wait.over->seconds_since(*wait.wanted));
}

double GradientOrders::waited() {
  for (Wait& wait : waits_) count(wait);
  return waited_;
}

void GradientOrders::await_all(Wait& wait) {
  collective_.mark(*wait.over);
  wait.over->await();
  wait.ordered = true;
}

}  // namespace fettle::trainer
