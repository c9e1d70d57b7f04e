#include "kernels/backends/cuda/backend.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda/libraries/library_plans.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/errors.h"
#include "kernels/cuda/runtime/nvtx.h"
#include "kernels/cuda/runtime/staging.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/cuda/runtime/upload_buffers.h"

namespace fettle::kernels {
namespace {

// FETTLE_CUDA_GRAPHS=0: each launch enqueues the work again, for comparison and debugging.
bool wants_graphs() {
  const char* value =
      std::getenv("FETTLE_CUDA_GRAPHS");  // NOLINT(concurrency-mt-unsafe): read only
  return value == nullptr || std::string_view(value) != "0";
}

class Replay final : public Graph {
 public:
  explicit Replay(std::function<void()> work) : work_(std::move(work)) {}
  void launch() override { work_(); }

 private:
  const std::function<void()> work_;
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<cuda::Device> device)
      : device_(std::move(device)), library_plans_(*device_) {}

  std::string_view name() const override { return "cuda"; }

  Result<std::unique_ptr<LinearOp>> make_linear(const LinearShape& shape,
                                                const PlanOptions& plan) override {
    return cuda_linear(library_plans_, shape, plan);
  }
  Result<std::unique_ptr<WeightedOp>> make_conv(const ConvShape& shape,
                                                const PlanOptions& plan) override {
    return cuda_conv(library_plans_, shape, plan);
  }
  Result<std::unique_ptr<BatchNormOp>> make_batch_norm(const BatchNormShape& shape,
                                                       const PlanOptions& plan) override {
    return cuda_batch_norm(*device_, shape, plan);
  }
  Result<std::unique_ptr<RowNormOp>> make_row_norm(const RowNormShape& shape,
                                                   const PlanOptions& plan) override {
    return cuda_row_norm(*device_, shape, plan);
  }
  Result<std::unique_ptr<AttentionOp>> make_attention(const AttentionShape& shape,
                                                      const PlanOptions& plan) override {
    return cuda_attention(library_plans_, shape, plan);
  }
  Result<std::unique_ptr<EmbeddingOp>> make_embedding(const EmbeddingShape& shape,
                                                      const PlanOptions& plan) override {
    return cuda_embedding(*device_, shape, plan);
  }
  Result<std::unique_ptr<PoolOp>> make_pool(const PoolShape& shape,
                                            const PlanOptions& plan) override {
    return cuda_pool(*device_, shape, plan);
  }
  std::unique_ptr<ReluOp> relu(DataType type) override { return cuda_relu(*device_, type); }
  std::unique_ptr<GeluOp> gelu(GeluForm form, std::int64_t /*max_count*/, DataType type) override {
    return cuda_gelu(*device_, form, type);
  }
  std::unique_ptr<DropoutOp> dropout(float rate, std::int64_t elements_per_sample,
                                     DataType type) override {
    return cuda_dropout(*device_, rate, elements_per_sample, type);
  }
  std::unique_ptr<SoftmaxCrossEntropyOp> softmax_cross_entropy(std::int64_t classes,
                                                               DataType type) override {
    return cuda_softmax_cross_entropy(*device_, classes, type);
  }

  Result<std::unique_ptr<GatherOp>> make_gather(const Samples& samples, const ImageLook& look,
                                                const PlanOptions& plan) override {
    return cuda_gather(*device_, samples, look, plan);
  }

  std::unique_ptr<UpdateOp> update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                   const UpdateSettings& settings) override {
    auto made = cuda_update(*device_, rule, std::move(parts), settings);
    CHECK(made.ok(), made.error().message);
    return std::move(made).value();
  }
  void sum_of_squares(std::int64_t count, const float* values, double* result) override {
    cuda_sum_of_squares(*device_, count, values, result);
  }
  void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) override {
    cuda_add_step_sums(*device_, of_loss, input, of_step);
  }
  void decide_step(const StepSettings& settings, const StepSums* sums,
                   StepControl* control) override {
    cuda_decide_step(*device_, settings, sums, control);
  }
  void end_statistics(std::int64_t count, const StepControl* control, const float* before,
                      const float* sums, float* statistics) override {
    cuda_end_statistics(*device_, count, control, before, sums, statistics);
  }
  void add_scaled(std::int64_t count, float factor, const float* x, float* y) override {
    cuda_add_scaled(*device_, count, factor, x, y);
  }
  void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
           bool relu) override {
    cuda_add(*device_, type, count, a, b, y, relu);
  }
  void fake_quantize(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                     Buffer y) override {
    cuda_fake_quantize(*device_, type, count, range, x, y);
  }
  void fake_quantize_backward(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                              ConstBuffer dy, Buffer dx) override {
    cuda_fake_quantize_backward(*device_, type, count, range, x, dy, dx);
  }
  void track_range(DataType type, std::int64_t count, ConstBuffer x, float share,
                   float* range) override {
    cuda_track_range(*device_, type, count, x, share, range);
  }
  void fake_quantize_weights(DataType type, const WeightRows& rows, ConstBuffer x,
                             Buffer y) override {
    cuda_fake_quantize_weights(*device_, type, rows, x, y);
  }
  void round(DataType type, std::int64_t count, const float* from, std::uint16_t* to) override {
    cuda_round(*device_, type, count, from, to);
  }
  void widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to) override {
    cuda_widen(*device_, type, count, from, to);
  }

  bool shares_memory() const override { return false; }
  std::optional<std::int64_t> free_memory() const override { return device_->available(); }
  Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) override {
    check_not_capturing();
    return device_->allocate(bytes);
  }
  void upload(const void* from, Buffer to, std::int64_t bytes) override {
    check_not_capturing();
    staging_.upload(from, to, bytes, device_->stream());
  }
  void download(ConstBuffer from, void* to, std::int64_t bytes) override {
    check_not_capturing();
    if (bytes == 0) return wait();
    cuda::must_succeed(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes),
                                       cudaMemcpyDeviceToHost, device_->stream()));
    wait();
  }
  std::unique_ptr<Readback> readback(std::int64_t bytes) override {
    check_not_capturing();
    return cuda::make_readback(device_->stream(), bytes);
  }
  Result<std::unique_ptr<UploadBuffers>> upload_buffers(std::int64_t bytes) override {
    check_not_capturing();
    return cuda::make_upload_buffers(*device_, bytes);
  }
  // An empty array may have no address, and a graph takes no node for it.
  void copy(ConstBuffer from, Buffer to, std::int64_t bytes) override {
    if (bytes == 0) return;
    cuda::must_succeed(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes),
                                       cudaMemcpyDeviceToDevice, device_->stream()));
  }
  void set_zero(Buffer to, std::int64_t bytes) override {
    if (bytes == 0) return;
    cuda::must_succeed(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), device_->stream()));
  }
  void wait() override {
    check_not_capturing();
    cuda::must_succeed(cudaStreamSynchronize(device_->stream()));
  }
  std::unique_ptr<Graph> capture(std::function<void()> work) override {
    check_not_capturing();
    if (!captures_) return std::make_unique<Replay>(std::move(work));
    capturing_ = true;
    auto graph = cuda::capture(device_->stream(), work);
    capturing_ = false;
    return graph;
  }
  std::unique_ptr<Event> event() override {
    check_not_capturing();
    return cuda::make_event(device_->stream());
  }

  Result<Workspace> workspace(const std::function<Status()>& make) override {
    device_->set_measuring(true);
    // make() creates operations, whose memory is now counted, not allocated.
    const Status made = make();
    const Workspace measured = device_->measured();
    device_->set_measuring(false);
    if (!made.ok()) return made.error();
    return measured;
  }
  Status reserve_workspace(const Workspace& needed) override {
    FETTLE_TRY(device_->reserve_scratch(needed.shared));
    return device_->reserve_branch_scratch(needed.branch);
  }

  DeviceIdentity device() const override { return device_->identity(); }
  std::vector<Implementation> implementations() const override {
    return library_plans_.implementations().all();
  }
  std::vector<Implementation> take_recent_implementations() override {
    return library_plans_.implementations().take_recent();
  }
  std::unique_ptr<Timeline> timeline() override {
    wait();
    return cuda::make_timeline(device_->stream());
  }
  std::unique_ptr<Ranges> ranges() override { return cuda::nvtx_ranges(); }

 private:
  void check_not_capturing() const {
    CHECK(!capturing_,
          "what is captured must neither allocate, upload, download, wait nor capture");
  }

  const std::unique_ptr<cuda::Device> device_;
  cuda::LibraryPlans library_plans_;
  cuda::Staging staging_;
  const bool captures_ = wants_graphs();
  bool capturing_ = false;
};

}  // namespace

Result<std::unique_ptr<Backend>> cuda_backend() {
  FETTLE_ASSIGN(auto device, cuda::Device::open());
  // cuda_sum_of_squares cannot report a lack of memory.
  FETTLE_TRY(device->reserve_scratch(kSquaresScratch));
  FETTLE_TRY(device->reserve_counters(1));
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(std::move(device)));
}

}  // namespace fettle::kernels
