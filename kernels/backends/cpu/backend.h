// CpuBackend: what all backends on a CPU have in common. Memory is the process's own, every call is
// done when it returns, and a graph is the function that was captured.
// One thread.
#pragma once

#include "kernels/backend.h"

namespace fettle::kernels {

class CpuBackend : public Backend {
 public:
  Result<std::unique_ptr<GatherOp>> make_gather(const Samples& samples, const ImageLook& look,
                                                const PlanOptions& plan) override;

  void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) override;
  void decide_step(const StepSettings& settings, const StepSums* sums,
                   StepControl* control) override;
  void end_statistics(std::int64_t count, const StepControl* control, const float* before,
                      const float* sums, float* statistics) override;
  void add_scaled(std::int64_t count, float factor, const float* x, float* y) override;

  bool shares_memory() const override { return true; }
  std::optional<std::int64_t> free_memory() const override { return {}; }
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) override;
  void upload(const void* from, Buffer to, std::int64_t bytes) override;
  void download(ConstBuffer from, void* to, std::int64_t bytes) override;
  std::unique_ptr<Readback> readback(std::int64_t bytes) override;
  Result<std::unique_ptr<UploadBuffers>> upload_buffers(std::int64_t bytes) override;
  void copy(ConstBuffer from, Buffer to, std::int64_t bytes) override;
  void set_zero(Buffer to, std::int64_t bytes) override;
  void wait() override {}
  std::unique_ptr<Graph> capture(std::function<void()> work) override;
};

}  // namespace fettle::kernels
