// What `fettle run` says at the end: the outcome, the best configuration ready to paste, where the
// time went, what failed and where to look further. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/views/text.h"
#include "cli/views/view.h"

namespace fettle::cli {

// For people. `program` is how this program is called in the hints: "fettle", "fettle -C there".
std::string render_summary(const RunView& view, const LogHint& log, const std::string& program,
                           const Style& style);

// The same for machines: {"study", "state", "message", "trials", "best", "time", "failures"}.
// `best` is null while there is none; best.objective is the first objective's value.
Json summary_json(const RunView& view, const LogHint& log);

// The best trial of a study that has one (view.study.status.best): as YAML to paste into a study,
// under a comment that says what it reached, and for machines.
std::string best_yaml(const RunView& view);
Json best_json(const RunView& view);
// Its parameters as a shell reads them: FETTLE_PARAM_LEARNING_RATE=0.01, one per line.
std::string best_env(const RunView& view);

// Trials that failed for one reason.
struct FailureGroup {
  std::string reason;
  std::int64_t trials = 0;
  std::string log;  // where to look, of the newest run of the first of them
};
// The most frequent first. Reasons that differ only in numbers are one.
std::vector<FailureGroup> group_failures(const RunView& view, const LogHint& log);

}  // namespace fettle::cli
