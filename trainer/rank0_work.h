// Work that rank 0 does alone while the others wait: reading and writing checkpoints. A large
// checkpoint on a slow volume takes longer than a collective may (FETTLE_COLLECTIVE_SECONDS), so
// rank 0 sends regular signs of life. The limit then applies to a silent rank 0, not to its disk.
//
// All workers call it, with no collective under way. The work runs on a separate thread and must
// not use the collective; the caller's thread waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "trainer/parallel/collective.h"

namespace fettle::trainer {

struct Rank0Work {
  std::string what;                             // "reads a checkpoint", for the waiting workers
  std::function<void()> work = {};              // of rank 0; empty on the others
  std::function<void(const std::string&)> log;  // called once, if a wait exceeds `quiet`
  std::chrono::milliseconds quiet = std::chrono::minutes(1);
};

// Returns when the work is done. Errors: a worker was lost meanwhile; the work is done anyway.
Status do_at_rank0(Collective& collective, const Rank0Work& work);

}  // namespace fettle::trainer
