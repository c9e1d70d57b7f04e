// Metrics of the device that trains: operations a second, the share of the device's peak, and
// NVML's measurements of its GPU. Pure.
#pragma once

#include <optional>

#include "api/trainer_config.h"
#include "kernels/profiling.h"
#include "machine/gpu_meter.h"
#include "trainer/reporter/training_report.h"

namespace fettle::trainer {

// Peak operations a second for products of this precision, by the data sheet. Absent: a CPU, or a
// GPU that is not in the table (machine/gpu.h). fp32 has the rate without TF32.
std::optional<double> peak_flops_of(const kernels::DeviceIdentity& device,
                                    api::Precision precision);

// `model_flops`: of the whole world, which has `workers` devices of this peak.
Metrics compute_metrics(double model_flops, double seconds, std::optional<double> peak,
                        std::int64_t workers = 1);

// Only the values that are known.
Metrics gpu_metrics(const machine::GpuUse& use);

void append(Metrics& metrics, const Metrics& more);

}  // namespace fettle::trainer
