#include "trainer/step/gradient_sum.h"

#include <utility>

namespace fettle::trainer {

GradientSum::GradientSum(Collective& collective, GradientMessages messages)
    : collective_(collective), messages_(std::move(messages)) {}

GradientSum::~GradientSum() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GradientSum::layer_done(std::int64_t layer, std::span<float> gradients) {
  const std::vector<EarlyMessage>& early = messages_.early;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = complete_;
    // The backward pass runs from the last layer to the first, and so do the messages.
    while (complete_ < early.size() && early[complete_].layer >= layer) ++complete_;
    if (complete_ == before) return;
    gradients_ = gradients;
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void GradientSum::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || sent_ < complete_; });
    if (stopping_) return;
    const Range values = messages_.early[sent_].values;
    const std::span<float> gradients = gradients_;
    const bool given_up = !status_.ok();  // after an error the remaining messages are only counted
    lock.unlock();
    Status sent = given_up ? success() : send(values, gradients);
    lock.lock();
    if (!sent.ok()) status_ = std::move(sent);
    ++sent_;
    changed_.notify_all();
  }
}

Status GradientSum::send(const Range& values, std::span<float> gradients) {
  return collective_.sum(gradients.subspan(static_cast<std::size_t>(values.begin),
                                           static_cast<std::size_t>(values.size())));
}

Result<std::size_t> GradientSum::await_sent() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return sent_ == complete_; });
  complete_ = 0;
  const std::size_t sent = std::exchange(sent_, 0);
  const Status status = std::exchange(status_, success());
  if (!status.ok()) return status.error();
  return sent;
}

Status GradientSum::finish(std::span<float> gradients) {
  FETTLE_ASSIGN(const std::size_t sent, await_sent());
  // Messages that no layer_done() released, all of them if this worker had no batch.
  for (std::size_t i = sent; i < messages_.early.size(); ++i) {
    FETTLE_TRY(send(messages_.early[i].values, gradients));
  }
  return send(messages_.rest, gradients);
}

}  // namespace fettle::trainer
