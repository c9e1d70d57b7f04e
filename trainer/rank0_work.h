// Work that rank 0 does alone while the others wait: reading and writing checkpoints. A large one
// on a slow volume takes longer than a collective may (FETTLE_COLLECTIVE_SECONDS), so rank 0 says
// every moment that it is still at it. The limit is then for a rank 0 that says nothing, not for
// its disk.
//
// All workers call it, with nothing of the collective under way. The work runs on a thread of its
// own and must not use the collective; the caller's thread waits for it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "trainer/collective.h"

namespace fettle::trainer {

struct Rank0Work {
  std::string what;                             // "reads a checkpoint", for those that wait
  std::function<void()> work = {};              // of rank 0; empty elsewhere
  std::function<void(const std::string&)> log;  // of a wait that takes longer than `quiet`; once
  std::chrono::milliseconds quiet = std::chrono::minutes(1);
};

// Returns when the work is done. Errors: a worker was lost meanwhile; the work is done
// nevertheless.
Status do_at_rank0(Collective& collective, const Rank0Work& work);

}  // namespace fettle::trainer
