// Validation for a FakeApiServer (on_validation), as by an API server with Fettle's definitions of
// Studies and Trials: the rulebook of api/ and its defaults. Other kinds are accepted unchanged.
// Pure; usable from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

Result<Json> apply_rulebook(const Json& before, const Json& after);

}  // namespace fettle::kubernetes
