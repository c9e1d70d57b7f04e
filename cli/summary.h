// What `fettle run` says at the end: the outcome, the best configuration ready to paste, where the
// time went, what failed and where to look further. Pure but for file names.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/text.h"
#include "cli/view.h"
#include "runtime/local/layout.h"

namespace fettle::cli {

// For people. `program` is how this program is called in the hints: "fettle", "fettle -C there".
std::string render_summary(const RunView& view, const local::Layout& layout,
                           const std::string& program, const Style& style);

// The same for machines: {"study", "state", "message", "trials", "best", "time", "failures"}.
// `best` is null while there is none; best.objective is the first objective's value.
Json summary_json(const RunView& view, const local::Layout& layout);

// Trials that failed for one reason.
struct FailureGroup {
  std::string reason;
  std::int64_t trials = 0;
  std::string log;  // of the newest run of the first of them
};
// The most frequent first. Reasons that differ only in numbers are one.
std::vector<FailureGroup> group_failures(const RunView& view, const local::Layout& layout);

}  // namespace fettle::cli
