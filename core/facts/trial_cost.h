// The time and the GPUs that the runs of one trial have used, from its records.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

// The GPUs of a worker for runs whose record does not say how many it had. A request for GPU memory
// counts as a whole GPU, because the share depends on the card.
double gpus_per_worker(const api::TrialTemplate& trial);
// The cost of a second of one worker: its number of GPUs; without GPUs 1.
double price_of_second(const api::TrialTemplate& trial);

// Time of all workers of all runs until `now_ms`, failed runs too.
double seconds_of(const api::Trial& trial, std::int64_t now_ms);
std::int64_t worker_ms(const api::Trial& trial, std::int64_t now_ms);
// GPU time; absent if the records do not say how many GPUs a worker has.
std::optional<std::int64_t> gpu_ms(const api::Trial& trial, std::int64_t now_ms);

// The cost of a trial until now: the seconds of all workers of all its runs, failed runs too, times
// the GPUs of a worker if it has any.
double cost_of(const api::Study& study, const api::Trial& trial, std::int64_t now_ms);

}  // namespace fettle::core
