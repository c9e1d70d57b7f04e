// Metrics of the device that trains: operations a second, the share of the device's peak, NVML's
// measurements of its GPU; and the implementations of the passes of a network's layers: a library's
// or, if the library has no plan for a shape, a kernel of our own, which may be far slower. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "base/machine/gpu_meter.h"
#include "kernels/profiling.h"
#include "trainer/model/network.h"
#include "trainer/reporter/training_report.h"

namespace fettle::trainer {

// Peak operations a second for products of this precision, by the data sheet. Absent: a CPU, or a
// GPU that is not in the table (base/machine/gpu.h). fp32 has the rate without TF32.
std::optional<double> peak_flops_of(const kernels::DeviceIdentity& device,
                                    api::Precision precision);

// `model_flops`: of the whole world, which has `workers` devices of this peak.
Metrics compute_metrics(double model_flops, double seconds, std::optional<double> peak,
                        std::int64_t workers = 1);

// Only the values that are known.
Metrics gpu_metrics(const machine::GpuUse& use);

void append(Metrics& metrics, const Metrics& more);

// [{"pass": "forward", "by": "cuDNN", "fused": "bias, ReLU", "layers": ["conv1", "conv2"]}, ...]:
// layers are grouped by implementation, in the order of the first layers. A pass that fell back
// also has a "reason".
Json to_json(const std::vector<LayerImplementation>& implementations);

// Number of passes of layers that fell back to a kernel of our own.
std::int64_t fallbacks(const std::vector<LayerImplementation>& implementations);

}  // namespace fettle::trainer
