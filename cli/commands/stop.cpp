// fettle stop: ends a study's trials like Ctrl-C, from another terminal.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"

namespace fettle::cli {

Result<int> stop_command(const Target& place, const StopOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_ASSIGN(const std::string sentence, source->stop(options.study, options.now));
  std::cout << sentence << '\n';
  return kExitSucceeded;
}

}  // namespace fettle::cli
