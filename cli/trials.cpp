// fettle trials: the trials of a study as a table, as CSV or as JSON.
#include <iostream>

#include "api/names.h"
#include "api/trial_json.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/recorded_study.h"
#include "cli/terminal.h"
#include "cli/trial_table.h"

namespace fettle::cli {

int trials_command(const TrialsOptions& options) {
  const auto recorded = read_recorded_study(options.root, options.study);
  if (!recorded.ok()) {
    std::cerr << "fettle: " << recorded.error().message << '\n';
    return exit_code_of(recorded.error().code);
  }
  switch (options.output) {
    case Output::kText:
      std::cout << render_trials(recorded->view, columns_of_stdout(), style_of_stdout());
      break;
    case Output::kCsv:
      std::cout << trials_csv(recorded->view);
      break;
    case Output::kJson:
      std::cout << trials_json(recorded->view);
      break;
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
