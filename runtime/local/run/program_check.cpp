#include "runtime/local/run/program_check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "api/study/parameter_env.h"
#include "api/study/pod_template.h"
#include "base/file.h"

namespace fettle::local {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhere = "spec.trial.template.spec.containers: ";
constexpr std::uintmax_t kLongestScript = 1 << 20;

std::vector<std::string> words_of(const Json& container, const char* key) {
  std::vector<std::string> words;
  const Json* const list = container.find(key);
  if (list == nullptr || !list->is_array()) return words;
  for (const Json& word : list->as_array()) {
    if (word.is_string()) words.push_back(word.as_string());
  }
  return words;
}

std::vector<std::string> command_of(const Json& container) {
  std::vector<std::string> command = words_of(container, "command");
  for (std::string& word : words_of(container, "args")) command.push_back(std::move(word));
  return command;
}

std::string text_of(const Json& object, const char* key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : "";
}

bool has_variable(const std::string& word) { return word.find("$(") != std::string::npos; }

bool sets_path(const Json& container) {
  const Json* const env = container.find("env");
  if (env == nullptr || !env->is_array()) return false;
  return std::ranges::any_of(env->as_array(),
                             [](const Json& entry) { return text_of(entry, "name") == "PATH"; });
}

bool is_in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    rest = colon == rest.npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

// "python3.11" -> true.
bool is_interpreter(const std::string& program) {
  static constexpr std::array<std::string_view, 10> kInterpreters = {
      "python", "sh", "bash", "dash", "zsh", "Rscript", "julia", "node", "perl", "ruby"};
  std::string name = fs::path(program).filename().string();
  while (!name.empty() && std::string_view("0123456789.").find(name.back()) != std::string::npos) {
    name.pop_back();
  }
  return std::ranges::find(kInterpreters, name) != kInterpreters.end();
}

// The script that is an interpreter's first argument; options are not understood.
std::optional<std::string> script_of(const std::vector<std::string>& command) {
  if (command.size() < 2 || !is_interpreter(command[0])) return std::nullopt;
  const auto script = std::find_if(command.begin() + 1, command.end(),
                                   [](const auto& word) { return word != "-u" && word != "-B"; });
  const bool is_named =
      script != command.end() && !script->starts_with('-') && !has_variable(*script);
  return is_named ? std::optional(*script) : std::nullopt;
}

fs::path folder_of(const Json& container, const std::string& directory) {
  const std::string inside = text_of(container, "workingDir");
  const fs::path folder = inside.empty() ? fs::path(directory) : fs::path(directory) / inside;
  std::error_code code;
  return folder.empty() ? fs::current_path(code) : folder;
}

// Whether the text names this variable, and not only a longer one with the same beginning.
bool names(std::string_view text, std::string_view variable) {
  for (std::size_t at = text.find(variable); at != text.npos; at = text.find(variable, at + 1)) {
    const std::size_t end = at + variable.size();
    const char next = end < text.size() ? text[end] : ' ';
    const bool goes_on =
        next == '_' || (next >= 'A' && next <= 'Z') || (next >= '0' && next <= '9');
    if (!goes_on) return true;
  }
  return false;
}

std::string script_text(const Json& container, const std::string& directory) {
  const std::optional<std::string> script = script_of(command_of(container));
  if (!script) return "";
  const fs::path path = folder_of(container, directory) / *script;
  std::error_code code;
  if (!fs::is_regular_file(path, code) || fs::file_size(path, code) > kLongestScript) return "";
  const Result<std::string> text = read_file(path.string());
  return text.ok() ? *text : "";
}

}  // namespace

Status check_program(const api::Study& study, const std::string& directory) {
  const Json* const container = api::trial_container(study.spec.trial.pod_template);
  if (study.spec.trial.trainer || container == nullptr) return success();
  const std::vector<std::string> command = command_of(*container);
  // An empty command is refused by check_study().
  if (command.empty() || has_variable(command[0])) return success();
  const fs::path folder = folder_of(*container, directory);
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return invalid(std::string(kWhere) + "workingDir: there is no folder " + folder.string());
  }
  const std::string& program = command[0];
  if (program.find('/') == std::string::npos) {
    if (!sets_path(*container) && !is_in_path(program)) {
      return invalid(std::string(kWhere) + "command: " + program +
                     " is not found in PATH; install it, or correct the name");
    }
  } else if (!fs::exists(folder / program, code)) {
    return invalid(std::string(kWhere) + "command: there is no " + program + " in " +
                   folder.string() + ", where trials start");
  } else if (::access((folder / program).c_str(), X_OK) != 0) {
    return invalid(std::string(kWhere) + "command: " + program +
                   " is not executable (chmod +x), or name its interpreter first");
  }
  const std::optional<std::string> script = script_of(command);
  if (!script || fs::exists(folder / *script, code)) return success();
  return invalid(std::string(kWhere) + "command: there is no " + *script + " in " +
                 folder.string() + ", where trials start: the folder of the Study file, or " +
                 "workingDir");
}

std::vector<std::string> unused_parameters(const api::Study& study, const std::string& directory) {
  const Json* const container = api::trial_container(study.spec.trial.pod_template);
  if (study.spec.trial.trainer || container == nullptr) return {};
  const std::string written = container->dump();
  const std::string script = script_text(*container, directory);
  const std::string text = written + script;
  // The trial file has all parameters, and so has a Trial of Python; a name may be put together.
  if (text.find("fettle.trials") != std::string::npos) return {};
  if (names(text, "FETTLE_TRIAL") || names(text, "FETTLE_PARAM_")) return {};
  const auto is_named = [&](const api::Parameter& parameter) {
    return names(text, api::parameter_env_name(parameter.name));
  };
  const bool names_some = std::ranges::any_of(study.spec.parameters, is_named);
  // If the template names none, a program that is not read here may get them otherwise.
  if (!names_some && script.empty()) return {};
  std::vector<std::string> sentences;
  for (const api::Parameter& parameter : study.spec.parameters) {
    if (is_named(parameter)) continue;
    sentences.push_back("parameter " + parameter.name + ": the template " +
                        (script.empty() ? "does" : "and its script do") + " not mention " +
                        api::parameter_env_name(parameter.name) +
                        "; if nothing reads it, it is tuned in vain");
  }
  return sentences;
}

}  // namespace fettle::local
