// Runs the ranks of a worker with several GPUs: this program once more for each GPU.
//
// SIGTERM and SIGINT are passed on to all ranks. When one has failed, the others are stopped: a
// worker joins and leaves as a whole. They die with this process.
// For a process with a single thread that has not opened a GPU yet.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/parallel/worker_ranks.h"

namespace fettle::trainer {

// Chooses a port of the loopback that is free now, and a token that cannot be guessed.
Result<Meeting> meet_on_loopback();

// Returns when all ranks have ended, with the exit code of the worker: that of the first failed
// rank, 143 (130) if one was stopped, else 0. If the first failed rank was killed by a signal, this
// process ends by that signal, too, so that its parent sees the same (as process 1 of a container,
// which cannot, it returns 128 plus the signal's number). `argv`: of this program. Errors: a
// process could not be made.
Result<int> run_ranks(const std::vector<Variables>& ranks, char** argv,
                      const std::function<void(const std::string&)>& log);

}  // namespace fettle::trainer
