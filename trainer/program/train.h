// Runs a trial or a configuration: finds this process's place among the workers, takes over the
// checkpoints, loads the data, trains, and delivers reports.
//
// One thread, besides those of the parts. Handles SIGTERM and SIGINT from here on: each ends the
// training after the step under way.
#pragma once

#include "trainer/program/arguments.h"

namespace fettle::trainer {

// Returns the exit code. `argv`: of this program; with several GPUs it is started once more for
// each of them.
int train_here(const Arguments& arguments, char** argv);

}  // namespace fettle::trainer
