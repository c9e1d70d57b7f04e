// RepeatedWork: backend work that is the same each time: captured once, then launched.
//
// The first run is not captured: libraries plan and CUDA loads kernels on first use, and neither
// may happen within a capture. One thread, the backend's.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "kernels/backend.h"

namespace fettle::trainer {

class RepeatedWork {
 public:
  // `work`: the same work every time. The objects it refers to must outlive this.
  void run(kernels::Backend& backend, const std::function<void()>& work) {
    if (!std::exchange(enqueued_before_, true)) return work();
    if (graph_ == nullptr) graph_ = backend.capture(work);
    graph_->launch();
  }

 private:
  bool enqueued_before_ = false;
  std::unique_ptr<kernels::Graph> graph_;
};

}  // namespace fettle::trainer
