// What the pages read of CLI11's tree. Pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fettle::cli {

// The commands that --help lists, in its order.
std::vector<const CLI::App*> listed_commands(const CLI::App& app);
// Its options, positional arguments left out.
std::vector<const CLI::Option*> named_options(const CLI::App& app);
// "-o,--out": the option's names, joined by `separator`.
std::string names_of(const CLI::Option& option, const std::string& separator);

}  // namespace fettle::cli
