#include "trainer/step/device_metrics.h"

#include "api/metric_names.h"

namespace fettle::trainer {

namespace metric = api::metric;

std::optional<double> peak_flops_of(const kernels::DeviceIdentity& device,
                                    api::Precision precision) {
  const std::optional<machine::GpuPeak> peak = machine::peak_of_gpu(device.name);
  if (!peak) return std::nullopt;
  switch (precision) {
    case api::Precision::kFp32:
      return peak->fp32_exact;
    case api::Precision::kAuto:  // on a GPU
    case api::Precision::kTf32:
      return peak->fp32;
    default:  // bf16, fp16
      return peak->bits16;
  }
}

Metrics compute_metrics(double model_flops, double seconds, std::optional<double> peak,
                        std::int64_t workers) {
  const double rate = model_flops / seconds;
  Metrics metrics;
  metrics.emplace_back(metric::kFlops, rate);
  if (peak) metrics.emplace_back(metric::kMfu, rate / (*peak * static_cast<double>(workers)));
  return metrics;
}

Metrics gpu_metrics(const machine::GpuUse& use) {
  Metrics metrics;
  if (use.utilization) metrics.emplace_back(metric::kGpuUtilization, *use.utilization);
  if (use.memory) metrics.emplace_back(metric::kGpuMemory, *use.memory);
  if (use.power) metrics.emplace_back(metric::kGpuPower, *use.power);
  if (use.energy) metrics.emplace_back(metric::kGpuEnergy, *use.energy);
  return metrics;
}

void append(Metrics& metrics, const Metrics& more) {
  metrics.insert(metrics.end(), more.begin(), more.end());
}

}  // namespace fettle::trainer
