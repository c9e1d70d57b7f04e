// What a report says of the device that trains: operations a second, the share of what it could do,
// and what NVML tells of its GPU. Pure.
#pragma once

#include <optional>

#include "api/trainer_config.h"
#include "kernels/profiling.h"
#include "machine/gpu_meter.h"
#include "trainer/training_report.h"

namespace fettle::trainer {

// Operations a second that products of this precision can reach by the data sheet. Absent: a CPU,
// or a GPU that the table (machine/gpu.h) does not have. fp32 is that without TF32, which this
// trainer does not use.
std::optional<double> peak_flops_of(const kernels::DeviceIdentity& device,
                                    api::Precision precision);

// `model_flops`: of the whole world, which has `workers` devices of this peak.
Metrics compute_metrics(double model_flops, double seconds, std::optional<double> peak,
                        std::int64_t workers = 1);

// Only what is known.
Metrics gpu_metrics(const machine::GpuUse& use);

void append(Metrics& metrics, const Metrics& more);

}  // namespace fettle::trainer
