// LiveView: reads a running study again and again, and passes news to the display.
#pragma once

#include <cstdint>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "cli/views/display.h"
#include "cli/views/timeline.h"
#include "cli/views/view.h"

namespace fettle::cli {

inline constexpr int kRefreshIntervalMs = 150;  // between redraws

// Derives a study's state from its objects: kActive until it is finished or suspended.
enum class StudyState { kActive, kFinished, kSuspended };
StudyState study_state_of(const api::Study& study, const std::vector<api::TrialPtr>& trials);

// Returns the exit code of `fettle run` for a finished study.
int exit_code_of_study(const api::Study& study);

class LiveView {
 public:
  explicit LiveView(Display& display) : display_(display) {}

  void show(api::Study study, std::vector<api::TrialPtr> trials, std::int64_t now_ms);

  // The study as last seen.
  const RunView& view() const { return view_; }

 private:
  Display& display_;
  Timeline timeline_;
  RunView view_;
};

}  // namespace fettle::cli
