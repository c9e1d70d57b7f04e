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

// For one of `processes` processes of a worker.
MemoryThere memory_there(const kernels::Backend& backend, std::int64_t processes);
// The same where the configuration's backend is not here: of its GPU nothing is known.
MemoryThere memory_there(const api::TrainingConfig& config, std::int64_t processes);

}  // namespace fettle::trainer
