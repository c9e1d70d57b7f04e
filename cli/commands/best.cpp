// fettle best: the best configuration of a study, ready to paste.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/views/best_schedule.h"
#include "cli/views/expected_best.h"
#include "cli/views/summary.h"

namespace fettle::cli {
namespace {

Result<int> print_schedule(const RunView& view, Output output) {
  if (output == Output::kJson) {
    std::cout << schedule_json(view).dump() << '\n';
  } else if (output == Output::kYaml) {
    FETTLE_ASSIGN(const std::string study, schedule_study(view));
    std::cout << study;
  } else {
    std::cout << render_schedule(view);
  }
  return kExitSucceeded;
}

}  // namespace

Result<int> best_command(const Target& place, const BestOptions& options) {
  FETTLE_ASSIGN(SeenStudy seen, read_study(place, options.study));
  if (seen.view.study.status.best.empty()) {
    std::cerr << "fettle: study " << seen.view.study.metadata.name << " has no result yet\n";
    return kExitFailed;
  }
  if (options.schedule) return print_schedule(seen.view, options.output);
  expect_best(seen.view);
  if (options.output == Output::kJson) {
    std::cout << best_json(seen.view).dump() << '\n';
  } else if (options.output == Output::kEnv) {
    std::cout << best_env(seen.view);
  } else {
    std::cout << best_yaml(seen.view);
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
