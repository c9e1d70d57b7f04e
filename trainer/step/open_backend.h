// Opens the backend of a training, and measures the memory available to it.
#pragma once

#include <memory>

#include "api/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/step/memory_plan.h"

namespace fettle::trainer {

// The backend that the configuration names; with `auto` the fastest of this machine. Errors: it is
// not available, with the reason.
Result<std::unique_ptr<kernels::Backend>> open_backend(const api::TrainingConfig& config);

// For one of a worker's `processes` processes.
MemoryThere memory_there(const kernels::Backend& backend, std::int64_t processes);
// The same if the configuration's backend is not here: nothing is known about its GPU.
MemoryThere memory_there(const api::TrainingConfig& config, std::int64_t processes);

}  // namespace fettle::trainer
