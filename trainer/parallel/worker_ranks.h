// The ranks of a worker: a worker with several GPUs takes part as several ranks, each a separate
// process with one GPU, as with torchrun (docs/decisions/0026). Derives their environment
// variables. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/parallel/connection.h"
#include "trainer/parallel/variables.h"

namespace fettle::trainer {

// Meeting point of the ranks of a single worker (no WORLD_SIZE), and their shared secret.
struct Meeting {
  Endpoint at;
  std::string token;
};

// The variables of each of the `gpus` ranks of the worker that `variable` describes. Worker 1 of
// three with two GPUs has the ranks 2 and 3 of six. The GPUs are those of CUDA_VISIBLE_DEVICES,
// else 0, 1, 2 ... Errors: fewer GPUs are visible; a variable is no number. Requires gpus >= 1.
Result<std::vector<Variables>> rank_variables(const Variable& variable, std::int64_t gpus,
                                              const Meeting& alone);

// Whether this process already is such a rank, started by this program or by torchrun.
bool is_rank_of_worker(const Variable& variable);

}  // namespace fettle::trainer
