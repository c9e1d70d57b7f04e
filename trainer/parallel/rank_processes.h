// Runs the ranks of a worker with several GPUs: this program once more for each.
//
// SIGTERM and SIGINT are passed on to all. When one of them has failed, the others are told to
// stop: a worker comes and goes as a whole. They die with this process.
// For a process with a single thread that has not opened a GPU yet.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/parallel/worker_ranks.h"

namespace fettle::trainer {

// A port of the loopback that is free now, and a token that cannot be guessed.
Result<Meeting> meet_on_loopback();

// Returns when all have ended, with the exit code of the worker: that of the first that failed, 143
// (130) if one was stopped, else 0. Where the first that failed was killed by a signal, this
// process ends by it, too, so that the process that started it sees the same (128 and the signal's
// number as process 1 of a container, which cannot). `argv`: of this program. Errors: a process
// could not be made.
Result<int> run_ranks(const std::vector<Variables>& ranks, char** argv,
                      const std::function<void(const std::string&)>& log);

}  // namespace fettle::trainer
