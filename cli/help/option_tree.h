// Readers of CLI11's tree of commands for the pages. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fettle::cli {

// Returns the commands that --help lists, in its order.
std::vector<const CLI::App*> listed_commands(const CLI::App& app);
// Returns the command's options without positional arguments.
std::vector<const CLI::Option*> named_options(const CLI::App& app);
// Returns "-o,--out": the option's names, joined by `separator`.
std::string names_of(const CLI::Option& option, const std::string& separator);

}  // namespace fettle::cli
