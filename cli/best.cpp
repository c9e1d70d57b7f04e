// fettle best: the best configuration of a study, ready to paste.
#include <iostream>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/study_source.h"
#include "cli/summary.h"

namespace fettle::cli {

int best_command(const BestOptions& options) {
  auto source = open_source(options.place);
  if (!source.ok()) return complain(source.error());
  const auto seen = (*source)->read(options.study, Detail::kObjects);
  if (!seen.ok()) return complain(seen.error());
  if (seen->view.study.status.best.empty()) {
    std::cerr << "fettle: study " << options.study << " has no result yet\n";
    return kExitFailed;
  }
  if (options.output == Output::kJson) {
    std::cout << best_json(seen->view).dump() << '\n';
  } else {
    std::cout << best_yaml(seen->view);
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
