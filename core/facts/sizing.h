// Sizes that Fettle may set itself: the workers of a trial (elastic.h) and the GPU memory that each
// requests (gpu_memory.h). A Study's spec says whether it does, a trial's records what came of it.
// Pure functions; usable from any thread.
#pragma once

#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

// Whether the workers of the Study's trials follow the elastic policy: min < max, and
// spec.trial.workers.sizing is Auto or, for the built-in trainer, absent. A user's own image must
// be able to regroup its workers while it trains, so its Study has to ask for the policy.
bool sizes_itself(const api::StudySpec& spec);

// Whether the Study says gpu {memory: auto}.
bool sizes_gpu_memory(const api::StudySpec& spec);

// The GPUs of the trial, for display: "2", "0.25", "20Gi"; "" = CPU.
std::string gpu_text_of(const api::StudySpec& spec, const api::TrialSpec& trial);

// Whether the newest run of the trial ended because it had too little memory of its GPU, and it
// has not been given more since.
bool needs_more_gpu_memory(const api::Trial& trial);

// Records that the run ended because its GPU memory was too small, if its Study sets that size.
void record_gpu_memory(const api::StudySpec& spec, const Run& run, api::RunRecord& record);

}  // namespace fettle::core
