// fettle logs: the output of a trial, also while it grows. Unchanged into a file or pipe; on a
// terminal only colours are left of its control sequences.
#include <unistd.h>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_text.h"

namespace fettle::cli {

Result<int> logs_command(const Target& place, const LogsOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  const bool as_it_is = options.raw || ::isatty(STDOUT_FILENO) == 0;
  TerminalText text;
  const Status printed =
      source->print_log(options.trial, options.run, options.follow, [&](std::string_view bytes) {
        write_stdout(as_it_is ? std::string(bytes) : text.feed(bytes));
      });
  write_stdout(text.finish());
  if (!printed.ok()) return printed.error();
  return kExitSucceeded;
}

}  // namespace fettle::cli
