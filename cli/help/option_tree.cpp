#include "cli/help/option_tree.h"

namespace fettle::cli {

std::vector<const CLI::App*> listed_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::string names_of(const CLI::Option& option, const std::string& separator) {
  std::string names;
  const auto add = [&](const std::string& name) {
    names += (names.empty() ? "" : separator) + name;
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  return names;
}

}  // namespace fettle::cli
