// The backend that a training runs on, and the memory that it finds there.
#pragma once

#include <memory>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/memory_plan.h"

namespace fettle::trainer {

// The one that the configuration names; with `auto` the fastest that this machine has. Errors: it
// is not there, in words.
Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config);

// What `auto` means for a backend: tf32 on a GPU, fp32 on a CPU, which has no other fp32.
api::Precision precision_on(const kernels::Backend& backend, api::Precision wanted);
api::Precision precision_on(bool gpu, api::Precision wanted);

// For one of `processes` processes of a worker.
MemoryThere memory_there(const kernels::Backend& backend, std::int64_t processes);
// The same where nothing is to be trained: of a GPU that is not here nothing is known.
MemoryThere memory_there(const api::TrainingConfig& config, std::int64_t processes);

}  // namespace fettle::trainer
