// ask_trainer(): runs fettle-trainer as a child that prints JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

// Returns the object that `fettle-trainer arguments...` prints in `directory` ("" = here). Blocks
// until it has ended. Errors: kIo, it cannot be started or prints no JSON; kInvalid, it refused,
// with its own message.
Result<Json> ask_trainer(const std::vector<std::string>& arguments,
                         const std::string& directory = "");

}  // namespace fettle::cli
