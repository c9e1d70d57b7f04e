// Scripts for three shells. If neither a command nor an option fits, bash and zsh fall back to file
// names; fish does so by itself.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "cli/help/option_tree.h"
#include "cli/help/pages.h"

namespace fettle::cli {
namespace {

std::string option_words(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : named_options(app)) words += names_of(*option, " ") + ' ';
  return words;
}

std::string command_names(const CLI::App& app, const std::string& separator) {
  std::string names;
  for (const CLI::App* command : listed_commands(app)) {
    names += (names.empty() ? "" : separator) + command->get_name();
  }
  return names;
}

std::string bash_script(const CLI::App& app) {
  const std::string always = option_words(app);
  std::string cases;
  for (const CLI::App* command : listed_commands(app)) {
    cases += "    " + command->get_name() + ") words=\"" + option_words(*command) + "\";;\n";
  }
  return "# bash completion for fettle: source <(fettle completion bash)\n"
         "_fettle() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} command= word words\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in " +
         command_names(app, "|") +
         ") command=$word; break;; esac\n"
         "  done\n"
         "  case $command in\n"
         "    '') words=\"" +
         command_names(app, " ") + "\";;\n" + cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words " +
         always +
         "\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _fettle fettle kubectl-fettle\n";
}

// Escapes text within single quotes and brackets of zsh's _arguments and _values.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':') {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_options(const CLI::App& app, const std::string& margin) {
  std::string text;
  for (const CLI::Option* option : named_options(app)) {
    const std::string about = "[" + zsh_text(option->get_description()) + "]";
    const std::string value = option->get_items_expected_max() > 0 ? ":value:_files" : "";
    for (const std::string& name : option->get_snames()) {
      text += " \\\n" + margin + "'-" + name + about + value + "'";
    }
    for (const std::string& name : option->get_lnames()) {
      text += " \\\n" + margin + "'--" + name + about + value + "'";
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : listed_commands(app)) {
    const std::string& name = command->get_name();
    commands += "    '" + name + ":" + zsh_text(command->get_description()) + "'\n";
    cases += "    " + name + ") _arguments" + zsh_options(*command, "      ") +
             " '*:argument:_files';;\n";
  }
  return "#compdef fettle kubectl-fettle\n"
         "_fettle() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         commands + "  )\n  _arguments -C" + zsh_options(app, "    ") +
         " '1:command:->command' '*::argument:->argument'\n"
         "  case $state in\n"
         "    command) _describe command commands; return;;\n"
         "  esac\n"
         "  case $words[1] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _fettle fettle kubectl-fettle\n";
}

// Escapes text within single quotes of fish.
std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fish_options(const CLI::App& app, const std::string& condition) {
  std::string text;
  for (const CLI::Option* option : named_options(app)) {
    text += "complete -c fettle" + condition;
    for (const std::string& name : option->get_snames()) text += " -s " + name;
    for (const std::string& name : option->get_lnames()) text += " -l " + name;
    if (option->get_items_expected_max() > 0) text += " -r";
    text += " -d '" + fish_text(option->get_description()) + "'\n";
  }
  return text;
}

std::string fish_script(const CLI::App& app) {
  std::string text =
      "# fish completion for fettle: fettle completion fish | source\n" + fish_options(app, "");
  for (const CLI::App* command : listed_commands(app)) {
    const std::string& name = command->get_name();
    text += "complete -c fettle -n __fish_use_subcommand -f -a " + name + " -d '" +
            fish_text(command->get_description()) + "'\n";
    text += fish_options(*command, " -n '__fish_seen_subcommand_from " + name + "'");
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)(const CLI::App& app);
};

constexpr std::array<Shell, 3> kShells = {
    {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}}};

}  // namespace

std::vector<std::string> completion_shells() {
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  return names;
}

std::string completion_script(const CLI::App& app, std::string_view shell) {
  const auto found = std::ranges::find(kShells, shell, &Shell::name);
  CHECK(found != kShells.end(), "the command line allows only these shells");
  return found->script(app);
}

}  // namespace fettle::cli
