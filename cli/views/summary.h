// The summary at the end of `fettle run`: the outcome, the best configuration ready to paste, the
// use of time, the failures and where to look further. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/terminal/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Renders text for people. `program` names this program in hints: "fettle", "fettle -C there".
std::string render_summary(const RunView& view, const LogHint& log, const std::string& program,
                           const Style& style);

// The same for machines: {"study", "state", "message", "trials", "best", "time", "failures"}.
// `best` is null until there is one; best.objective is the first objective's value.
Json summary_json(const RunView& view, const LogHint& log);

// Render the best trial of a study that has one (view.study.status.best): as YAML to paste into a
// study, under a comment with its result, and for machines. If results are noisy, also its expected
// value, the noise, and the trial that had more luck (view.expected_best).
std::string best_yaml(const RunView& view);
Json best_json(const RunView& view);
// Renders its parameters for a shell: FETTLE_PARAM_LEARNING_RATE=0.01, one per line.
std::string best_env(const RunView& view);

// Trials that failed for one reason.
struct FailureGroup {
  std::string reason;
  std::int64_t trials = 0;
  std::string log;  // of the newest run of the first of these trials
};
// Returns groups, most frequent first. Reasons that differ only in numbers are one.
std::vector<FailureGroup> group_failures(const RunView& view, const LogHint& log);

}  // namespace fettle::cli
