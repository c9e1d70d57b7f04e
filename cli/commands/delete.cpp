// fettle delete: removes a study that does not run, with all its files or objects.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"

namespace fettle::cli {

Result<int> delete_command(const Target& place, const DeleteOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_TRY(source->remove(options.study));
  std::cout << "study " << options.study << ' ' << source->place()
            << " is deleted, with its trials, logs and checkpoints\n";
  return kExitSucceeded;
}

}  // namespace fettle::cli
