#include "kernels/backends/cpu/backend.h"

#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/aligned.h"
#include "kernels/gather/reference.h"
#include "kernels/optimizer/step.h"

namespace fettle::kernels {
namespace {

class CpuMemory final : public Memory {
 public:
  explicit CpuMemory(std::int64_t bytes) : bytes_(bytes) {}
  Buffer data() override { return bytes_.data(); }

 private:
  AlignedArray<std::byte> bytes_;
};

class CpuGraph final : public Graph {
 public:
  explicit CpuGraph(std::function<void()> work) : work_(std::move(work)) {}
  void launch() override { work_(); }

 private:
  const std::function<void()> work_;
};

class CpuReadback final : public Readback {
 public:
  explicit CpuReadback(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {}

  void enqueue(ConstBuffer from) override {
    CHECK(posted_.size() <= kResultsBehind, "at most kResultsBehind + 1 copies under way");
    const auto* begin = static_cast<const std::byte*>(from);
    posted_.emplace_back(begin, begin + bytes_);
  }
  void take(void* to) override {
    CHECK(!posted_.empty(), "a copy is under way");
    std::memcpy(to, posted_.front().data(), bytes_);
    posted_.pop_front();
  }

 private:
  const std::size_t bytes_;
  std::deque<std::vector<std::byte>> posted_;
};

// Nothing is copied: a block is used where it was written.
class CpuUploadBuffers final : public UploadBuffers {
 public:
  explicit CpuUploadBuffers(std::int64_t bytes) {
    for (auto& place : places_) place = AlignedArray<std::byte>(bytes);
  }

  std::byte* next() override {
    std::swap(places_[0], places_[1]);
    return places_[0].data();
  }
  const std::byte* enqueue(std::int64_t /*bytes*/) override { return places_[0].data(); }
  double waited() const override { return 0; }

 private:
  std::array<AlignedArray<std::byte>, kPlaces> places_;
};

// Either may be nullptr for 0 bytes, which memcpy does not allow.
void copy_bytes(const void* from, void* to, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

Result<std::unique_ptr<GatherOp>> CpuBackend::make_gather(const Samples& samples,
                                                          const ImageLook& look,
                                                          const PlanOptions& plan) {
  return reference_gather(samples, look, plan);
}

void CpuBackend::add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) {
  add_and_clear(*of_loss, *input, *of_step);
}

void CpuBackend::decide_step(const StepSettings& settings, const StepSums* sums,
                             StepControl* control) {
  decide(settings, *sums, *control);
}

void CpuBackend::end_statistics(std::int64_t count, const StepControl* control, const float* before,
                                const float* sums, float* statistics) {
  for (std::int64_t i = 0; i < count; ++i) {
    statistics[i] = statistic_after(*control, before[i], sums[i]);
  }
}

void CpuBackend::add_scaled(std::int64_t count, float factor, const float* x, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

Result<std::unique_ptr<Memory>> CpuBackend::allocate(std::int64_t bytes) {
  return std::unique_ptr<Memory>(std::make_unique<CpuMemory>(bytes));
}

void CpuBackend::upload(const void* from, Buffer to, std::int64_t bytes) {
  copy_bytes(from, to, bytes);
}

void CpuBackend::download(ConstBuffer from, void* to, std::int64_t bytes) {
  copy_bytes(from, to, bytes);
}

std::unique_ptr<Readback> CpuBackend::readback(std::int64_t bytes) {
  return std::make_unique<CpuReadback>(bytes);
}

Result<std::unique_ptr<UploadBuffers>> CpuBackend::upload_buffers(std::int64_t bytes) {
  return std::unique_ptr<UploadBuffers>(std::make_unique<CpuUploadBuffers>(bytes));
}

void CpuBackend::copy(ConstBuffer from, Buffer to, std::int64_t bytes) {
  copy_bytes(from, to, bytes);
}

void CpuBackend::set_zero(Buffer to, std::int64_t bytes) {
  if (bytes > 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
}

std::unique_ptr<Graph> CpuBackend::capture(std::function<void()> work) {
  return std::make_unique<CpuGraph>(std::move(work));
}

}  // namespace fettle::kernels
