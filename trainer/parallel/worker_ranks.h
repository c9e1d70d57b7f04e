// The ranks of a worker: with several GPUs a worker takes part as several ranks, each a process of
// its own with one GPU, as torchrun's processes are (docs/decisions/0026). Here, what of the
// environment tells them apart. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/parallel/connection.h"
#include "trainer/parallel/variables.h"

namespace fettle::trainer {

// Where the ranks of a worker that has no others (no WORLD_SIZE) meet, and what only they know.
struct Meeting {
  Endpoint at;
  std::string token;
};

// Of each of the `gpus` ranks of the worker that `variable` tells of. Worker 1 of three with two
// GPUs has the ranks 2 and 3 of six. The GPUs are those of CUDA_VISIBLE_DEVICES, else 0, 1, 2 ...
// Errors: fewer GPUs are visible; a variable is no number. Requires gpus >= 1.
Result<std::vector<Variables>> rank_variables(const Variable& variable, std::int64_t gpus,
                                              const Meeting& alone);

// Whether this process is one of such ranks already, started as one or by torchrun.
bool is_rank_of_worker(const Variable& variable);

}  // namespace fettle::trainer
