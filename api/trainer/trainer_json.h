// The built-in trainer's configuration from and to JSON, and single fields of it by path.
// Pure functions; usable from any thread.
#pragma once

#include <string_view>

#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

// Fills in defaults of absent fields. Errors list every wrong field, one a line.
Result<TrainerConfig> read_trainer_config(const Json& document);
Json write_trainer_config(const TrainerConfig& config);

// Writes `value` into the field that `path` names, as a parameter's `sets` does:
// "training.learningRate", "model.layers[0].units". Errors: no such field (names the nearest one);
// a value that the field's type or bounds refuse.
Status set_trainer_field(TrainerConfig& config, std::string_view path, const Json& value);

}  // namespace fettle::api
