#include "runtime/trial_variables.h"

#include "api/study/parameter_env.h"

namespace fettle::runtime {

namespace {

using api::TrialFile;

std::string parent_step(const TrialFile& file) {
  return file.parent ? std::to_string(file.parent->step) : "";
}

// A variable without a value is set, too: Kubernetes does not expand $(NAME) if NAME is not set,
// and a shell under `set -u` stops.
constexpr struct {
  const char* name;
  std::string (*value)(const TrialFile& file);
} kVariables[] = {
    {"FETTLE_STUDY", [](const TrialFile& file) { return file.study; }},
    {"FETTLE_TRIAL_NAME", [](const TrialFile& file) { return file.trial; }},
    {"FETTLE_UNTIL_STEP", [](const TrialFile& file) { return std::to_string(file.until_step); }},
    {"FETTLE_CHECKPOINTS", [](const TrialFile& file) { return file.checkpoints.directory; }},
    {"FETTLE_PARENT",
     [](const TrialFile& file) { return file.parent ? file.parent->directory : ""; }},
    {"FETTLE_PARENT_STEP", parent_step},
};

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> trial_variables(const TrialFile& file,
                                                                         const std::string& path) {
  std::vector<std::pair<std::string, std::string>> out = {{"FETTLE_TRIAL", path}};
  for (const auto& [name, value] : kVariables) out.emplace_back(name, value(file));
  if (!file.parameters.is_object()) return out;
  for (const auto& [name, value] : file.parameters.as_object()) {
    std::string text = api::parameter_env_value(value);
    if (text.find('\0') != std::string::npos) {
      return invalid("the value of parameter " + name +
                     " holds a NUL character, which no environment variable can carry; correct it "
                     "in the Study");
    }
    out.emplace_back(api::parameter_env_name(name), std::move(text));
  }
  return out;
}

}  // namespace fettle::runtime
