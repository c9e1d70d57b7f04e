// ReferenceBackend: every operation's CPU reference. Plain C++ for any x86-64, one thread, a fixed
// order of summation: the same inputs give the same bits on every machine. bf16 is emulated
// (reference/floats.h).
//
// Memory is the process's own, every call is done when it returns, and a graph is the captured
// function. One thread.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/add/loops.h"
#include "kernels/aligned.h"
#include "kernels/backend.h"
#include "kernels/cast/loops.h"
#include "kernels/gather/reference.h"
#include "kernels/linear/unfused_gelu.h"
#include "kernels/optimizer/loops.h"
#include "kernels/optimizer/step.h"
#include "kernels/quantize/loops.h"
#include "kernels/reference_operations.h"

namespace fettle::kernels {

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

// Copies nothing: a block is used where it was written.
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

class ReferenceBackend : public Backend {
 public:
  std::string_view name() const override { return "reference"; }

  Result<std::unique_ptr<LinearOp>> make_linear(const LinearShape& shape,
                                                const PlanOptions& plan) override {
    return unfused_gelu(*this, shape, plan, reference_linear(shape, plan));
  }
  Result<std::unique_ptr<WeightedOp>> make_conv(const ConvShape& shape,
                                                const PlanOptions& plan) override {
    return reference_conv(shape, plan);
  }
  Result<std::unique_ptr<BatchNormOp>> make_batch_norm(const BatchNormShape& shape,
                                                       const PlanOptions& plan) override {
    return reference_batch_norm(shape, plan);
  }
  Result<std::unique_ptr<RowNormOp>> make_row_norm(const RowNormShape& shape,
                                                   const PlanOptions& plan) override {
    return reference_row_norm(shape, plan);
  }
  Result<std::unique_ptr<AttentionOp>> make_attention(const AttentionShape& shape,
                                                      const PlanOptions& plan) override {
    return reference_attention(shape, plan);
  }
  Result<std::unique_ptr<EmbeddingOp>> make_embedding(const EmbeddingShape& shape,
                                                      const PlanOptions& plan) override {
    return reference_embedding(shape, plan);
  }
  Result<std::unique_ptr<PoolOp>> make_pool(const PoolShape& shape,
                                            const PlanOptions& plan) override {
    return reference_pool(shape, plan);
  }
  Result<std::unique_ptr<GatherOp>> make_gather(const Samples& samples, const ImageLook& look,
                                                const PlanOptions& plan) override {
    return reference_gather(samples, look, plan);
  }
  std::unique_ptr<ReluOp> relu(DataType type) override { return reference_relu(type); }
  std::unique_ptr<GeluOp> gelu(GeluForm form, std::int64_t max_count, DataType type) override {
    return reference_gelu(form, max_count, type);
  }
  std::unique_ptr<DropoutOp> dropout(float rate, std::int64_t elements_per_sample,
                                     DataType type) override {
    return reference_dropout(rate, elements_per_sample, type);
  }
  std::unique_ptr<SoftmaxCrossEntropyOp> softmax_cross_entropy(std::int64_t classes,
                                                               DataType type) override {
    return reference_softmax_cross_entropy(classes, type);
  }

  std::unique_ptr<UpdateOp> update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                   const UpdateSettings& settings) override {
    return reference_update(rule, std::move(parts), settings);
  }
  void sum_of_squares(std::int64_t count, const float* values, double* result) override {
    *result = sum_squares(count, values);
  }
  void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) override {
    add_and_clear(*of_loss, *input, *of_step);
  }
  void decide_step(const StepSettings& settings, const StepSums* sums,
                   StepControl* control) override {
    decide(settings, *sums, *control);
  }
  void end_statistics(std::int64_t count, const StepControl* control, const float* before,
                      const float* sums, float* statistics) override {
    for (std::int64_t i = 0; i < count; ++i) {
      statistics[i] = statistic_after(*control, before[i], sums[i]);
    }
  }
  void add_scaled(std::int64_t count, float factor, const float* x, float* y) override {
    for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
  }
  void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
           bool relu) override {
    add_typed(type, count, a, b, y, relu);
  }
  void fake_quantize(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                     Buffer y) override {
    run_typed<FakeQuantize>(type, count, range, x, y);
  }
  void fake_quantize_backward(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                              ConstBuffer dy, Buffer dx) override {
    run_typed<FakeQuantizeGradient>(type, count, range, x, dy, dx);
  }
  void track_range(DataType type, std::int64_t count, ConstBuffer x, float share,
                   float* range) override {
    run_typed<TrackRange>(type, count, x, share, range);
  }
  void fake_quantize_weights(DataType type, const WeightRows& rows, ConstBuffer x,
                             Buffer y) override {
    run_typed<FakeQuantizeWeights>(type, rows, x, y);
  }
  void round(DataType type, std::int64_t count, const float* from, std::uint16_t* to) override {
    round_all(type, count, from, to);
  }
  void widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to) override {
    widen_all(type, count, from, to);
  }

  bool shares_memory() const override { return true; }
  std::optional<std::int64_t> free_memory() const override { return {}; }
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) override {
    return std::unique_ptr<Memory>(std::make_unique<CpuMemory>(bytes));
  }
  void upload(const void* from, Buffer to, std::int64_t bytes) override { copy(from, to, bytes); }
  void download(ConstBuffer from, void* to, std::int64_t bytes) override { copy(from, to, bytes); }
  std::unique_ptr<Readback> readback(std::int64_t bytes) override {
    return std::make_unique<CpuReadback>(bytes);
  }
  Result<std::unique_ptr<UploadBuffers>> upload_buffers(std::int64_t bytes) override {
    return std::unique_ptr<UploadBuffers>(std::make_unique<CpuUploadBuffers>(bytes));
  }
  // An empty array may have no address, which memcpy and memset do not allow.
  void copy(ConstBuffer from, Buffer to, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void set_zero(Buffer to, std::int64_t bytes) override {
    if (bytes > 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
  }
  void wait() override {}
  std::unique_ptr<Graph> capture(std::function<void()> work) override {
    return std::make_unique<CpuGraph>(std::move(work));
  }
};

}  // namespace fettle::kernels
