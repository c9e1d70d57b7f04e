// Study.status, derived from the trials at every reconcile. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/study/study.h"
#include "core/plan.h"
#include "core/study/ledger.h"
#include "core/study/spending.h"
#include "core/study/study_end.h"

namespace fettle::core {

// The condition of a Study that is over and will be deleted with the claim of its checkpoints, from
// a day before.
inline constexpr const char* kExpiring = "Expiring";
inline constexpr std::int64_t kExpiryNoticeMs = 86'400'000;

// The least time between two writes of a status, unless the Study ends or its spec was changed.
inline constexpr std::int64_t kStatusIntervalMs = 1'000;
// How often spending and ETA are refreshed while nothing but time passes.
inline constexpr std::int64_t kSpendingIntervalMs = 60'000;

// The observations and decisions of plan_study.
struct StudyOutlook {
  const Ledger& ledger;  // of the trials as they are once the plan is carried out
  const Spending& spending;
  std::int64_t slots;                // trials that can run at once
  std::optional<StudyEnd> draining;  // trials are being stopped because of it
  std::optional<StudyEnd> ended;     // the Study is over
  std::string algorithm;             // the sampler's description of itself
  std::string waiting = {};          // why the first trial cannot be created yet; "" = it can
  std::string all_wait = {};         // why no created trial runs; "" = some do
  std::shared_ptr<const api::GpuChoice> gpu = nullptr;  // null: status.gpu stays as it is
};

// The status at `now_ms`; updated_ms is `now_ms`.
api::StudyStatus study_status(const api::Study& study, const StudyOutlook& outlook,
                              std::int64_t now_ms);

// The number of trials in the end: the budget, or more where trials take over from others or the
// budget was lowered, and the replicates. nullopt: not limited.
std::optional<std::int64_t> planned_trials(const api::StudySpec& spec,
                                           const api::TrialCounts& counts, bool is_over);

// When `next` may be written over `before`: now or later; absent: it says nothing new. `running`:
// time is being spent.
std::optional<std::int64_t> write_time(const api::StudyStatus& before, const api::StudyStatus& next,
                                       bool running, std::int64_t now_ms);

// Adds to `plan` the write of `next`, with events about what changes (started, GPUs chosen,
// suspended, resumed, ended), or wakes the plan when it may be written.
void add_status(const api::StudyStatus& before, api::StudyStatus next, bool running,
                std::int64_t now_ms, StudyPlan& plan);

// For the column "Status" of tables, from the conditions.
std::string state_of(const api::StudyStatus& status);

}  // namespace fettle::core
