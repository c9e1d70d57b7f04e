// fettle scale: changes the number of workers of a running trial, without stopping it.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

Status check_workers(const api::Study& study, std::int64_t workers) {
  const api::Workers& allowed = study.spec.trial.workers;
  if (allowed.min == allowed.max) {
    return invalid("the trials of " + study.metadata.name + " have " +
                   plural(allowed.min, "worker") +
                   " each, and need them all; a study with trial.workers.min below max can be "
                   "scaled");
  }
  if (workers >= allowed.min && workers <= allowed.max) return success();
  return invalid("found " + std::to_string(workers) + " workers, expected " +
                 std::to_string(allowed.min) + " to " + std::to_string(allowed.max) +
                 " (trial.workers)");
}

}  // namespace

Result<int> scale_command(const Target& place, const ScaleOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_ASSIGN(const SeenStudy seen, read_study_of(*source, options.trial));
  FETTLE_TRY(check_workers(seen.view.study, options.workers));
  FETTLE_TRY(source->scale(options.trial, options.workers));
  std::cout << options.trial << ": " << plural(options.workers, "worker") << " wanted\n";
  return kExitSucceeded;
}

}  // namespace fettle::cli
