// Study.status, derived from the trials at every reconcile. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "core/ledger.h"
#include "core/plan.h"
#include "core/spending.h"
#include "core/study_end.h"

namespace fettle::core {

// The least time between two writes of a status, unless the Study ends or its spec was changed.
inline constexpr std::int64_t kStatusIntervalMs = 1'000;
// How often spending and ETA are refreshed while nothing but time passes.
inline constexpr std::int64_t kSpendingIntervalMs = 60'000;

// What plan_study found out and decided.
struct StudyOutlook {
  const Ledger& ledger;  // of the trials as they are once the plan is carried out
  const Spending& spending;
  std::int64_t slots;                // trials that can run at once
  std::optional<StudyEnd> draining;  // trials are being stopped because of it
  std::optional<StudyEnd> ended;     // nothing will happen any more
  std::string algorithm;             // the sampler's description of itself
  std::string waiting = {};          // why nothing is begun yet; "" = nothing is in the way
  std::string all_wait = {};         // why of those that have begun none runs
  std::shared_ptr<const api::GpuChoice> gpu = nullptr;  // null: status.gpu stays as it is
};

// The status that says so at `now_ms`; updated_ms is `now_ms`.
api::StudyStatus study_status(const api::Study& study, const StudyOutlook& outlook,
                              std::int64_t now_ms);

// When `next` may be written over `before`: now, later, or never (absent: nothing to say).
std::optional<std::int64_t> write_time(const api::StudyStatus& before, const api::StudyStatus& next,
                                       bool running, std::int64_t now_ms);

// Events for what changed between two statuses: started, GPUs chosen, suspended, resumed, ended.
std::vector<EventNote> status_notes(const api::StudyStatus& before, const api::StudyStatus& next);

// For the column "Status" of tables, from the conditions.
std::string state_of(const api::StudyStatus& status);

}  // namespace fettle::core
