// The man page, in man(7) macros, and docs/commands.md.
#include "cli/help/option_tree.h"
#include "cli/help/pages.h"

namespace fettle::cli {
namespace {

// Escapes dashes, which would become hyphens, and a request at the beginning of a line.
std::string roff(const std::string& text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins = c == '\n';
  }
  return out;
}

std::string roff_options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : named_options(app)) {
    std::string names = names_of(*option, ", ");
    if (option->get_items_expected_max() > 0 && !option->get_type_name().empty()) {
      names += ' ' + option->get_type_name();
    }
    text += ".TP\n.B " + roff(names) + '\n' + roff(option->get_description()) + '\n';
  }
  return text;
}

// Returns "run file": the command with its positional arguments.
std::string synopsis(const CLI::App& command) {
  std::string text = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name();
    text += option->get_required() ? ' ' + name : " [" + name + ']';
  }
  return text;
}

// Keeps the layout of --help.
std::string roff_verbatim(const std::string& text) {
  return text.empty() ? "" : ".PP\n.nf\n" + roff(text) + "\n.fi\n";
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string text = ".TH FETTLE 1 \"\" \"fettle " FETTLE_VERSION
                     "\" \"User Commands\"\n"
                     ".SH NAME\nfettle \\- tune hyperparameters here or on Kubernetes\n"
                     ".SH SYNOPSIS\n.B fettle\n[options] command [arguments]\n"
                     ".SH DESCRIPTION\n" +
                     roff(app.get_description()) + "\n.SH OPTIONS\n" + roff_options(app) +
                     ".SH COMMANDS\n";
  for (const CLI::App* command : listed_commands(app)) {
    text += ".SS " + roff(synopsis(*command)) + '\n' + roff(command->get_description()) + ".\n" +
            roff_options(*command) + roff_verbatim(command->get_footer());
  }
  return text + ".SH EXAMPLES\n" + roff_verbatim(app.get_footer());
}

std::string commands_page(const CLI::App& app) {
  std::string text =
      "# Commands\n\nThe help of every command, as `fettle COMMAND --help` prints it. This page is "
      "made by\n`fettle pages markdown`. Completion: `source <(fettle completion bash)`, or zsh, "
      "or "
      "fish.\n\n## fettle\n\n```\n" +
      app.get_formatter()->make_help(&app, "fettle", CLI::AppFormatMode::Normal) + "```\n";
  for (const CLI::App* command : listed_commands(app)) {
    text += "\n## fettle " + command->get_name() + "\n\n```\n" + command->help() + "```\n";
  }
  return text;
}

}  // namespace fettle::cli
