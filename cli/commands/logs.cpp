// fettle logs: the output of a trial, also while it grows.

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/views/terminal.h"

namespace fettle::cli {

int logs_command(const LogsOptions& options) {
  auto source = open_source(options.place);
  if (!source.ok()) return complain(source.error());
  const Status printed =
      (*source)->print_log(options.trial, options.run, options.follow,
                           [](std::string_view bytes) { write_stdout(std::string(bytes)); });
  return printed.ok() ? static_cast<int>(kExitSucceeded) : complain(printed.error());
}

}  // namespace fettle::cli
