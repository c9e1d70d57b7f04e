// Pages derived from the tree of commands and options, so that they always agree with --help:
// completion for shells, a man page, and docs/commands.md. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace fettle::cli {

// Returns "bash", "zsh" and "fish".
std::vector<std::string> completion_shells();
// Returns a script that completes commands and options in `shell`, one of completion_shells().
std::string completion_script(const CLI::App& app, std::string_view shell);

// Returns fettle(1) for man.
std::string man_page(const CLI::App& app);
// Returns docs/commands.md: the help of every command.
std::string commands_page(const CLI::App& app);

}  // namespace fettle::cli
