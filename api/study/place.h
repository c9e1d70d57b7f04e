// Place: where the trials of a Study run, which decides whether checkpoints outlive a run.
// Pure; usable from any thread.
#pragma once

#include "api/study/study.h"

namespace fettle::api {

enum class Place { kLocal, kCluster };

// Whether the next run of a trial finds the checkpoints of the run before. On this machine they
// stay on its disk. On a cluster they need a claim; without one their volume is deleted with the
// pod.
bool checkpoints_survive(const StudySpec& spec, Place place);

}  // namespace fettle::api
