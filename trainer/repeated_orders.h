// RepeatedOrders: orders to a backend that are the same each time: recorded once and repeated.
//
// Not before the second time. Libraries plan, and CUDA loads kernels, when they are first asked;
// neither may happen within a recording of a GPU. One thread, the backend's.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "kernels/backend.h"

namespace fettle::trainer {

class RepeatedOrders {
 public:
  // `orders`: the same every time, as far as the backend can tell. What it refers to must outlive
  // this.
  void run(kernels::Backend& backend, const std::function<void()>& orders) {
    if (!std::exchange(ordered_before_, true)) return orders();
    if (recording_ == nullptr) recording_ = backend.record(orders);
    recording_->run();
  }

 private:
  bool ordered_before_ = false;
  std::unique_ptr<kernels::Recording> recording_;
};

}  // namespace fettle::trainer
