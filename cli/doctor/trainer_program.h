// The built-in trainer, asked from the command line: fettle-trainer as a child that prints JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

// What `fettle-trainer arguments...` prints in `directory` ("" = here), one object. Blocks until it
// has ended.
// Errors: kIo, it cannot be started or prints no JSON; kInvalid, it refused, in its own words.
Result<Json> ask_trainer(const std::vector<std::string>& arguments,
                         const std::string& directory = "");

}  // namespace fettle::cli
