// fettle why: why a trial's point was chosen, what was expected of it, and its result.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/views/reason.h"

namespace fettle::cli {

int why_command(const WhyOptions& options) {
  auto source = open_source(options.place);
  if (!source.ok()) return complain(source.error());
  const auto seen = read_study_of(**source, options.trial);
  if (!seen.ok()) return complain(seen.error());
  const api::Trial& trial = *find_trial(seen->view.trials, options.trial);
  const auto reason = reason_of(seen->view, trial);
  if (!reason.ok()) return complain(reason.error());
  if (options.output == Output::kJson) {
    std::cout << reason_json(seen->view, trial, *reason).dump() << '\n';
  } else {
    std::cout << render_reason(seen->view, trial, *reason);
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
