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

// For one of so many processes of a worker.
MemoryThere memory_there(const kernels::Backend& backend, std::int64_t processes);
// The same where nothing is to be trained: of a GPU that is not here nothing is known.
MemoryThere memory_there(const api::TrainingConfig& config, std::int64_t processes);

}  // namespace fettle::trainer
