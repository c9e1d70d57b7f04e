// fettle trials: the trials of a study as a table, as CSV or as JSON.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/views/terminal.h"
#include "cli/views/trial_table.h"

namespace fettle::cli {

int trials_command(const TrialsOptions& options) {
  const auto seen = read_study(options.place, options.study);
  if (!seen.ok()) return complain(seen.error());
  switch (options.output) {
    case Output::kText:
    case Output::kYaml:  // which this command does not offer
      std::cout << render_trials(seen->view, columns_of_stdout(), style_of_stdout());
      break;
    case Output::kCsv:
      std::cout << trials_csv(seen->view);
      break;
    case Output::kJson:
      std::cout << trials_json(seen->view);
      break;
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
