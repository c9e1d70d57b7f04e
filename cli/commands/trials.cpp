// fettle trials: the trials of a study as a table, as CSV or as JSON.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/terminal/terminal.h"
#include "cli/views/trial_table.h"

namespace fettle::cli {

Result<int> trials_command(const Target& place, const TrialsOptions& options) {
  FETTLE_ASSIGN(const SeenStudy seen, read_study(place, options.study));
  switch (options.output) {
    case Output::kText:
    case Output::kYaml:  // the command does not offer this format and the next
    case Output::kEnv:
      std::cout << render_trials(seen.view, columns_of_stdout(), style_of_stdout());
      break;
    case Output::kCsv:
      std::cout << trials_csv(seen.view);
      break;
    case Output::kJson:
      std::cout << trials_json(seen.view);
      break;
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
