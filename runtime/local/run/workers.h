// What tells the workers of one trial apart, and where they meet: the variables that PyTorch's
// programs and the built-in trainer read, as the pods of a Job have them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

// Of each of the `most` workers that there can be on this machine, by rank; `world_size` of them
// begin. They meet on a port of the loopback that is free now, and share a token that cannot be
// guessed. kIo: there is no free port.
Result<std::vector<Variables>> worker_variables(std::int64_t world_size, std::int64_t most);

}  // namespace fettle::local
