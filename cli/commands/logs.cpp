// fettle logs: the output of a trial, also while it grows.

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/views/terminal.h"

namespace fettle::cli {

Result<int> logs_command(const Target& place, const LogsOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_TRY(source->print_log(options.trial, options.run, options.follow,
                               [](std::string_view bytes) { write_stdout(std::string(bytes)); }));
  return kExitSucceeded;
}

}  // namespace fettle::cli
