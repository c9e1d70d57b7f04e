// StepGraphs: repeats the parts of a step whose batch lies where an earlier one lay: the calls are
// captured once for each place, and launched from then on.
//
// The first run of a part is not captured: libraries plan and CUDA loads kernels on first use, and
// neither may happen within a capture. One thread, the backend's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "kernels/backend.h"
#include "trainer/step/batch_staging.h"

namespace fettle::trainer {

class StepGraphs {
 public:
  enum class Part : std::uint8_t {
    kBatch,        // forward and backward of a micro-batch
    kBatchAndEnd,  // of a step's last micro-batch, with the step's end
    kEnd,          // of a step; has no batch
    kEvaluation,
  };

  explicit StepGraphs(kernels::Backend& backend) : backend_(backend) {}

  // Captures all anew: their calls would differ from now on.
  void forget() { repeated_.clear(); }

  // `work`: the same every time for this part and batch. The objects in it must outlive this.
  void run(Part part, const StagedBatch& batch, const std::function<void()>& work) {
    Repeated& repeated = repeated_[{part, batch}];
    if (!std::exchange(repeated.enqueued_before, true)) return work();
    if (repeated.graph == nullptr) repeated.graph = backend_.capture(work);
    repeated.graph->launch();
  }

 private:
  struct Repeated {
    bool enqueued_before = false;
    std::unique_ptr<kernels::Graph> graph;
  };

  kernels::Backend& backend_;
  std::map<std::pair<Part, StagedBatch>, Repeated> repeated_;
};

}  // namespace fettle::trainer
