// The variables that identify the workers of one trial and their rendezvous, as PyTorch's programs
// and the built-in trainer read them, and as the pods of a Job have them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

// Returns the variables of each of the `most` workers that this machine can have, by rank;
// `world_size` of them begin. They meet on a free port of the loopback, and share a token that
// cannot be guessed. kIo: no port is free.
Result<std::vector<Variables>> worker_variables(std::int64_t world_size, std::int64_t most);

}  // namespace fettle::local
