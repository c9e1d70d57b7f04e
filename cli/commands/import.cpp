// fettle import: the results of another tuner as a file for warmStart.results. The importers are
// modules of the Python package.
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/exchange/python_module.h"

namespace fettle::cli {

std::vector<std::string> import_sources() { return {"optuna", "ray", "wandb", "csv"}; }

Result<int> import_command(const ImportOptions& options) {
  std::vector<std::string> arguments = {"--source", options.source};
  const auto add = [&arguments](const char* option, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {option, value});
  };
  add("--study", options.study);
  for (const std::string& name : options.objectives) add("--objective", name);
  for (const std::string& name : options.parameters) add("--parameter", name);
  add("--output", options.file);
  FETTLE_ASSIGN(PythonModule module,
                PythonModule::start("fettle.importers." + options.from, arguments));
  return module.finish();
}

}  // namespace fettle::cli
