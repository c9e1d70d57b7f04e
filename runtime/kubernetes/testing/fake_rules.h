// What an API server with Fettle's definitions does with Studies and Trials, for a FakeApiServer
// (on_validation): the rulebook of api/ and its defaults. Other kinds are taken as they are.
// Pure; usable from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

Result<Json> apply_rulebook(const Json& before, const Json& after);

}  // namespace fettle::kubernetes
