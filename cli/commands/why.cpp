// fettle why: why a trial's point was chosen, what was expected of it, and its result.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/views/reason.h"

namespace fettle::cli {

Result<int> why_command(const Target& place, const WhyOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_ASSIGN(const SeenStudy seen, read_study_of(*source, options.trial));
  // The trial exists: read_study_of() has found it.
  const api::Trial& trial = *find_trial(seen.view.trials, options.trial);
  FETTLE_ASSIGN(const Reason reason, reason_of(seen.view, trial));
  if (options.output == Output::kJson) {
    std::cout << reason_json(seen.view, trial, reason).dump() << '\n';
  } else {
    std::cout << render_reason(seen.view, trial, reason);
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
