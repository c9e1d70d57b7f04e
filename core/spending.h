// Spending: what a Study's runs have used up, read off the run records.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/study.h"
#include "api/trial.h"

namespace fettle::core {

struct Spending {
  double active_seconds = 0;  // in which at least one trial was running
  double gpu_hours = 0;
  double gpus_in_use = 0;  // now: how fast gpu_hours grows
  bool running = false;    // active_seconds is growing now
};

// Runs whose records were pruned are taken to have ended right before the oldest that is kept.
Spending spending_of(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                     std::int64_t now_ms);

// What a trial has cost by now: the seconds of all workers of all its runs, failed ones too, times
// the GPUs of a worker, where it has some.
double cost_of(const api::Study& study, const api::Trial& trial, std::int64_t now_ms);

// What all trials together may cost, in the unit of cost_of, as far as the budget limits it.
std::optional<double> max_cost_of(const api::StudySpec& spec);

// Seconds from now until the Study is done if trials go on taking as long as those that ended have
// taken on average, `slots` at once; absent before the first one has ended.
std::optional<double> estimate_remaining(const api::Study& study,
                                         const std::vector<api::TrialPtr>& trials,
                                         const Spending& spending, std::int64_t slots,
                                         std::int64_t now_ms);

}  // namespace fettle::core
