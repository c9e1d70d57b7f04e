// Translates a configuration's precision for a backend: data types, and the options of operations.
// Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "api/trainer/trainer_config.h"
#include "kernels/backend.h"

namespace fettle::trainer {

// The type of activations and of the weights that operations read.
kernels::DataType data_type(api::Precision precision);

// Resolves `auto`: tf32 on a GPU, fp32 on a CPU, which has no other fp32.
api::Precision precision_on(const kernels::Backend& backend, api::Precision wanted);
api::Precision precision_on(bool gpu, api::Precision wanted);

// Whether the loss is scaled, because small gradients would vanish in fp16.
bool scales_loss(const api::TrainingConfig& config);

// For operations that take up to `max_samples` at once.
kernels::PlanOptions plan_options(const kernels::Backend& backend,
                                  const api::TrainingConfig& training, std::int64_t max_samples);

}  // namespace fettle::trainer
