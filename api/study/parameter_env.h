// Names of the environment variables that carry parameters. Pure; usable from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace fettle::api {

// "learning-rate" -> "FETTLE_PARAM_LEARNING_RATE": upper case, anything but [A-Z0-9_] becomes _.
std::string parameter_env_name(std::string_view parameter);

// A parameter's value as the text of an environment variable: strings as they are, numbers with the
// fewest digits that read back as the same value, booleans as true and false.
std::string parameter_env_value(const Json& value);

}  // namespace fettle::api
