#include "kernels/backends/cuda/event_timer.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backends/cuda/workloads.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/event.h"

namespace fettle::kernels::cuda {
namespace {

constexpr int kWarmUpCalls = 3;
constexpr std::size_t kSamples = 11;  // odd: one is the median
// Between two events: what the GPU waits for the first of them counts little then.
constexpr int kCallsOfSample = 5;
// Enough to go round, and no multiple of a pack: ends are compared, too.
constexpr std::int64_t kMostCompared = (1 << 20) + 3;

class EventTimer final : public KernelTimer {
 public:
  explicit EventTimer(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  const GpuKind& device() const override { return device_->kind(); }

  Result<double> microseconds(std::string_view name, const LaunchConfig& config,
                              std::int64_t elements) override {
    FETTLE_ASSIGN(const TunableKernel kernel, find_tunable(name));
    FETTLE_TRY(check_config(kernel, config));
    FETTLE_TRY(compare(kernel, config, std::min(elements, kMostCompared)));
    device_->set_launch_config(name, config);
    FETTLE_ASSIGN(const Workload work, make_workload(*device_, name, elements));
    return median(work);
  }

 private:
  // Whether the same comes out of it as with the usual configuration, bit for bit.
  Status compare(const TunableKernel& kernel, const LaunchConfig& config, std::int64_t elements) {
    if (config == kernel.usual) return success();
    FETTLE_ASSIGN(const std::vector<char> usual, result(kernel.name, kernel.usual, elements));
    FETTLE_ASSIGN(const std::vector<char> other, result(kernel.name, config, elements));
    if (usual == other) return success();
    return io_error(std::string(kernel.name) + " gives other results with " + to_text(config) +
                    " threads x blocks than with " + to_text(kernel.usual) +
                    ": a fault of this program; keep to the usual configuration");
  }

  Result<std::vector<char>> result(std::string_view kernel, const LaunchConfig& config,
                                   std::int64_t elements) {
    device_->set_launch_config(kernel, config);
    FETTLE_ASSIGN(const Workload work, make_workload(*device_, kernel, elements));
    work.run();
    std::vector<char> written(static_cast<std::size_t>(work.written_bytes));
    must_succeed(cudaMemcpyAsync(written.data(), work.written, written.size(),
                                 cudaMemcpyDeviceToHost, device_->stream()));
    must_succeed(cudaStreamSynchronize(device_->stream()));
    return written;
  }

  double median(const Workload& work) {
    for (int i = 0; i < kWarmUpCalls; ++i) work.run();
    Event start, end;
    std::array<double, kSamples> samples{};
    for (double& sample : samples) {
      start.record(device_->stream());
      for (int i = 0; i < kCallsOfSample; ++i) work.run();
      end.record(device_->stream());
      end.synchronize();
      sample = 1e6 * end.seconds_since(start) / kCallsOfSample;
    }
    std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
    return samples[kSamples / 2];
  }

  const std::unique_ptr<Device> device_;
};

}  // namespace

Result<std::unique_ptr<KernelTimer>> event_timer() {
  FETTLE_ASSIGN(auto device, Device::open());
  return std::unique_ptr<KernelTimer>(std::make_unique<EventTimer>(std::move(device)));
}

}  // namespace fettle::kernels::cuda
