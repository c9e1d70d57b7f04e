#include "runtime/local/run/run_command.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include "api/fields/quantity.h"
#include "api/study/pod_template.h"
#include "api/study/resolve.h"
#include "runtime/local/run/expand.h"
#include "runtime/local/run/gpus.h"
#include "runtime/make_trial_file.h"
#include "runtime/metric_lines.h"
#include "runtime/trial_variables.h"

namespace fettle::local {
namespace {

constexpr double kLeastCores = 0.001;
constexpr std::string_view kWhere = "spec.trial.template.spec.containers: ";
constexpr std::string_view kNotInNames("=$ \n\0", 5);  // of environment variables

// The member at the end of a path of keys, or nullptr.
const Json* at(const Json& object, std::initializer_list<const char*> path) {
  const Json* here = &object;
  for (const char* key : path) {
    here = here->find(key);
    if (here == nullptr) return nullptr;
  }
  return here;
}

bool has_items(const Json* list) {
  return list != nullptr && list->is_array() && !list->as_array().empty();
}

std::string text_of(const Json& object, const char* key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : "";
}

std::optional<double> quantity(const Json& container, const char* kind, const char* resource) {
  const Json* const value = at(container, {"resources", kind, resource});
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->as_double();
  if (!value->is_string()) return std::nullopt;
  const Result<double> parsed = api::parse_quantity(value->as_string());
  if (!parsed.ok()) return std::nullopt;
  return *parsed;
}

Status check_strings(const Json& container, const char* key) {
  const Json* const list = container.find(key);
  if (list == nullptr) return success();
  const bool good = list->is_array() && std::ranges::all_of(list->as_array(), [](const Json& item) {
                      return item.is_string();
                    });
  if (good) return success();
  return invalid(std::string(kWhere) + key + ": expected a list of strings (quote numbers)");
}

Status check_environment(const Json& container) {
  if (has_items(container.find("envFrom"))) {
    return invalid(std::string(kWhere) +
                   "envFrom: a local run has no ConfigMaps and Secrets; write the variables under "
                   "env with their values");
  }
  const Json* const env = container.find("env");
  if (env == nullptr) return success();
  if (!env->is_array()) return invalid(std::string(kWhere) + "env: expected a list");
  for (const Json& entry : env->as_array()) {
    const std::string name = text_of(entry, "name");
    if (name.empty() || name.find_first_of(kNotInNames) != std::string::npos) {
      return invalid(std::string(kWhere) + "env: expected entries with a name, found " +
                     entry.dump());
    }
    if (entry.find("valueFrom") != nullptr) {
      return invalid(std::string(kWhere) + "env." + name +
                     ".valueFrom: a local run cannot look that up; write its value");
    }
    const Json* const value = entry.find("value");
    if (value != nullptr && !value->is_string()) {
      return invalid(std::string(kWhere) + "env." + name + ".value: expected a string, found " +
                     value->dump() + " (quote it)");
    }
  }
  return success();
}

Status check_container(const Json& container) {
  if (!has_items(container.find("command"))) {
    return invalid(std::string(kWhere) +
                   "command: a local run does not pull images, so it needs the command to run; "
                   "found " +
                   (container.find("image") == nullptr
                        ? "neither a command nor an image"
                        : "only image " + text_of(container, "image")));
  }
  FETTLE_TRY(check_strings(container, "command"));
  FETTLE_TRY(check_strings(container, "args"));
  FETTLE_TRY(check_environment(container));
  if (has_items(container.find("volumeMounts"))) {
    return invalid(std::string(kWhere) +
                   "volumeMounts: a local run mounts nothing; use the paths of this machine");
  }
  return success();
}

Status check_template(const Json& pod_template) {
  const Json* const container = api::trial_container(pod_template);
  if (container == nullptr) {
    return invalid("spec.trial.template: expected spec.containers with one container");
  }
  if (has_items(at(pod_template, {"spec", "volumes"}))) {
    return invalid(
        "spec.trial.template.spec.volumes: a local run mounts nothing; leave them out "
        "and use the paths of this machine");
  }
  if (has_items(at(pod_template, {"spec", "initContainers"})) ||
      at(pod_template, {"spec", "containers"})->as_array().size() > 1) {
    return invalid(std::string(kWhere) +
                   "a local run starts one process for a trial; leave out the other containers");
  }
  return check_container(*container);
}

Status check_resources(const api::TrialTemplate& trial) {
  if (!trial.gpu) return success();
  if (trial.gpu->fraction || trial.gpu->memory) {
    return invalid(
        "spec.trial.gpu: a local run cannot divide a GPU; use count, leave gpu out, or run it on a "
        "cluster that shares GPUs (--on cluster)");
  }
  if (!trial.gpu->model.empty()) {
    return invalid(
        "spec.trial.gpu.model: a local run takes the GPUs of this machine; remove model");
  }
  const auto wanted = static_cast<std::size_t>(api::whole_gpus(trial) * trial.workers.min);
  const std::size_t found = visible_gpus().names.size();
  if (wanted <= found) return success();
  const std::string has = found == 0 ? "no NVIDIA GPU" : "only " + std::to_string(found);
  return invalid("spec.trial.gpu: each trial asks for " + std::to_string(wanted) +
                 ", this machine has " + has + "; leave gpu out to train on the CPU");
}

// Checked before the first trial, not after sixty have failed.
Status check_passed(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::getenv(name.c_str()) != nullptr) continue;
    return invalid("spec.trial.passEnvironment: " + name +
                   " is not set here; export it, or take it off the list");
  }
  return success();
}

// Sets a variable; a later entry of the same name replaces an earlier one, as in Kubernetes.
void set_variable(Variables& variables, const std::string& name, std::string value) {
  for (auto& [known, old] : variables) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

// Gives each worker as many threads as it requests cores, not as many as the machine has. A number
// that the user has set is inherited (process/environment.h).
void set_threads(const api::Study& study, Variables& variables) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  const auto threads =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(cores_per_worker(study)));
  set_variable(variables, "OMP_NUM_THREADS", std::to_string(threads));
}

// Python buffers 8 KiB of its output to a pipe, so a trial would seem silent. Any non-empty value
// switches that off.
void set_unbuffered(const api::Study& study, Variables& variables) {
  constexpr const char* kName = "PYTHONUNBUFFERED";
  const auto& passed = study.spec.trial.pass_environment;
  if (std::ranges::find(passed, kName) != passed.end()) return;
  set_variable(variables, kName, "1");
}

void expand_list(const Json* list, const std::map<std::string, std::string>& variables,
                 std::vector<std::string>& out) {
  if (list == nullptr || !list->is_array()) return;
  for (const Json& item : list->as_array()) {
    if (item.is_string()) out.push_back(expand(item.as_string(), variables));
  }
}

void fill_from_container(const Json& container, RunCommand& out) {
  // $(NAME) may name our own variables, and entries of `env` before it.
  std::map<std::string, std::string> known;
  for (const auto& [name, value] : out.environment) known.emplace(name, value);
  const Json* const env = container.find("env");
  if (env != nullptr && env->is_array()) {
    for (const Json& entry : env->as_array()) {
      const std::string name = text_of(entry, "name");
      const std::string value = expand(text_of(entry, "value"), known);
      known[name] = value;
      set_variable(out.environment, name, value);
    }
  }
  expand_list(container.find("command"), known, out.arguments);
  expand_list(container.find("args"), known, out.arguments);
  out.directory = text_of(container, "workingDir");
  const double limit = quantity(container, "limits", "memory").value_or(0);  // 0 = none
  out.memory_limit = static_cast<std::int64_t>(std::clamp(limit, 0.0, 0x1p62));
}

// The kernel's strings end at a NUL, so one inside a value would cut it off.
Status check_no_nul(const RunCommand& command) {
  constexpr const char* kMessage =
      "holds a NUL character, which neither arguments nor environment variables can carry; "
      "correct it in the Study";
  for (const std::string& argument : command.arguments) {
    if (argument.find('\0') != std::string::npos) {
      return invalid(std::string("an argument of the command ") + kMessage);
    }
  }
  for (const auto& [name, value] : command.environment) {
    if (value.find('\0') != std::string::npos) {
      return invalid("the value of " + name + " " + kMessage);
    }
  }
  return success();
}

}  // namespace

std::string pod_uid_of(const api::Trial& trial, std::int64_t run) {
  return trial.metadata.uid + "-r" + std::to_string(run);
}

Status check_study(const api::Study& study) {
  FETTLE_TRY(check_resources(study.spec.trial));
  if (study.spec.trial.metrics) {
    FETTLE_TRY(runtime::check_metrics_filter(*study.spec.trial.metrics));
  }
  FETTLE_TRY(check_passed(study.spec.trial.pass_environment));
  if (study.spec.trial.trainer) return success();
  return check_template(study.spec.trial.pod_template);
}

Result<RunCommand> make_command(const api::Study& study, const api::Trial& trial, std::int64_t run,
                                const Layout& layout, const std::string& trainer) {
  FETTLE_TRY(check_study(study));
  RunCommand out;
  FETTLE_ASSIGN(out.file, runtime::make_trial_file(study, trial, run, layout.checkpoint_root()));
  const std::string path = layout.trial_file(trial.metadata.name, run);
  FETTLE_ASSIGN(const auto variables, runtime::trial_variables(out.file, path));
  for (const auto& [name, value] : variables) out.environment.emplace_back(name, value);
  out.environment.emplace_back("FETTLE_POD_UID", pod_uid_of(trial, run));
  set_threads(study, out.environment);
  set_unbuffered(study, out.environment);
  if (study.spec.trial.trainer) {
    out.arguments = {trainer};
  } else {
    fill_from_container(*api::trial_container(study.spec.trial.pod_template), out);
  }
  FETTLE_TRY(check_no_nul(out));
  return out;
}

double cores_per_worker(const api::Study& study) {
  const api::TrialTemplate& trial = study.spec.trial;
  if (trial.trainer) {
    return static_cast<double>(std::max<std::int64_t>(trial.trainer->training.threads, 1));
  }
  const Json* const container = api::trial_container(trial.pod_template);
  if (container == nullptr) return 1;
  const auto request = quantity(*container, "requests", "cpu");
  const auto limit = quantity(*container, "limits", "cpu");
  return std::max(request.value_or(limit.value_or(1)), kLeastCores);
}

std::int64_t memory_per_worker(const api::Study& study) {
  const Json* const container = api::trial_container(study.spec.trial.pod_template);
  if (study.spec.trial.trainer || container == nullptr) return 0;
  const auto limit = quantity(*container, "limits", "memory");
  const double bytes = quantity(*container, "requests", "memory").value_or(limit.value_or(0));
  return static_cast<std::int64_t>(std::clamp(bytes, 0.0, 0x1p50));
}

}  // namespace fettle::local
