// Checks across fields of the trainer's configuration (trainer_config.h); see check.h.
// Pure; usable from any thread.
#pragma once

#include "api/fields/field_errors.h"
#include "api/trainer/trainer_config.h"

namespace fettle::api {

// Appends to `errors`. `path` is that of the configuration.
void check_trainer(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors);

}  // namespace fettle::api
