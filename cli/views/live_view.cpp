#include "cli/views/live_view.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cli/common/exit_code.h"
#include "core/conditions.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMostEntries = 100;  // kept for the screen

// Whether a trial of a suspended study has stopped.
bool rests(const api::TrialPtr& trial) {
  if (api::is_terminal(trial->status.phase)) return true;
  const api::RunRecord* run = newest_run(*trial);
  return trial->status.phase == api::TrialPhase::kPaused && (run == nullptr || run->outcome);
}

}  // namespace

StudyState study_state_of(const api::Study& study, const std::vector<api::TrialPtr>& trials) {
  if (study.status.observed_generation < study.metadata.generation) return StudyState::kActive;
  if (core::is_finished(study.status)) return StudyState::kFinished;
  if (!study.spec.suspend) return StudyState::kActive;
  return std::ranges::all_of(trials, rests) ? StudyState::kSuspended : StudyState::kActive;
}

int exit_code_of_study(const api::Study& study) {
  return state_of(study) == "failed" ? kExitFailed : kExitSucceeded;
}

void LiveView::show(api::Study study, std::vector<api::TrialPtr> trials, std::int64_t now_ms) {
  view_.study = std::move(study);
  view_.trials = std::move(trials);
  view_.now_ms = now_ms;
  bring_up_to_date(view_);  // counts, best trials, spending and ETA, which lag in the store
  const std::vector<TimelineEntry> news = timeline_.observe(view_.study, view_.trials);
  auto& kept = view_.timeline;
  kept.insert(kept.end(), news.begin(), news.end());
  if (kept.size() > kMostEntries) {
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(kMostEntries));
  }
  display_.show(view_, news);
}

}  // namespace fettle::cli
