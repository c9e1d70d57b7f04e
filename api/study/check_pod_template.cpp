// Checks of the user's own pod template: the parts that every runtime needs. The API server judges
// the rest.
#include <algorithm>
#include <vector>

#include "api/fields/quantity.h"
#include "api/study/check.h"
#include "api/study/pod_template.h"

namespace fettle::api {
namespace {

constexpr std::size_t kLargestTemplate = 100'000;  // bytes as JSON
constexpr std::size_t kMostContainers = 32;
constexpr std::size_t kMostWords = 1024;  // of command and args; entries of env

void expect(const Json& found, std::string_view expected, const FieldPath& path,
            FieldErrors& errors) {
  errors.add(path, "found " + describe(found) + ", expected " + std::string(expected));
}

bool is_text(const Json* value) { return value != nullptr && value->is_string(); }

// Checks command or args: a list of texts.
void check_words(const Json& container, std::string_view name, const FieldPath& path,
                 FieldErrors& errors) {
  const Json* words = container.find(name);
  if (words == nullptr || words->is_null()) return;
  const FieldPath field = path.member(name);
  if (!words->is_array() || words->as_array().size() > kMostWords) {
    return expect(*words, "a list of at most 1024 texts, one a word", field, errors);
  }
  for (std::size_t i = 0; i < words->as_array().size(); ++i) {
    const Json& word = words->as_array()[i];
    if (!word.is_string()) expect(word, "a text; put it in quotes", field.item(i), errors);
  }
}

// Whether `value` is a map; adds an error if it is anything else, unless it is absent.
bool is_map(const Json* value, const FieldPath& path, FieldErrors& errors) {
  if (value == nullptr || value->is_null()) return false;
  if (!value->is_object()) expect(*value, "a map of fields", path, errors);
  return value->is_object();
}

void check_env(const Json& container, const FieldPath& path, FieldErrors& errors) {
  const Json* env = container.find("env");
  if (env == nullptr || env->is_null()) return;
  const FieldPath field = path.member("env");
  if (!env->is_array() || env->as_array().size() > kMostWords) {
    return expect(*env, "a list of at most 1024 entries {name, value}", field, errors);
  }
  for (std::size_t i = 0; i < env->as_array().size(); ++i) {
    check_env_entry(env->as_array()[i], field.item(i), errors);
  }
}

void check_resources(const Json& container, const FieldPath& path, FieldErrors& errors) {
  const Json* resources = container.find("resources");
  const FieldPath field = path.member("resources");
  if (is_map(resources, field, errors)) check_amounts(*resources, field, errors);
}

void check_container(const Json& container, bool is_trial, const FieldPath& path,
                     FieldErrors& errors) {
  if (!container.is_object()) return expect(container, "a map of fields", path, errors);
  if (!is_text(container.find("name"))) {
    errors.add(path.member("name"), "is missing; expected a name, unique in the pod");
  }
  const Json* command = container.find("command");
  const bool has_command = command != nullptr && !command->is_null() &&
                           !(command->is_array() && command->as_array().empty());
  if (is_trial && !has_command && !is_text(container.find("image"))) {
    errors.add(path,
               "has neither command nor image; expected at least one of them: local runs "
               "need a command, a cluster an image");
  }
  const Json* image = container.find("image");
  if (image != nullptr && !image->is_null() && !image->is_string()) {
    expect(*image, "a text; put it in quotes", path.member("image"), errors);
  }
  check_words(container, "command", path, errors);
  check_words(container, "args", path, errors);
  check_env(container, path, errors);
  check_resources(container, path, errors);
}

void check_container_names(const Json::Array& containers, const FieldPath& path,
                           FieldErrors& errors) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Json* name = containers[i].find("name");
    if (!is_text(name)) continue;  // check_container() reports it
    const FieldPath item = path.item(i);
    if (std::ranges::find(names, name->as_string()) != names.end()) {
      errors.add(item.member("name"),
                 "found " + describe(*name) + " again; expected distinct names");
    }
    names.push_back(name->as_string());
  }
}

}  // namespace

void check_env_entry(const Json& entry, const FieldPath& path, FieldErrors& errors) {
  if (!entry.is_object()) return expect(entry, "a map of name and value", path, errors);
  const Json* name = entry.find("name");
  if (!is_text(name) || name->as_string().empty() ||
      name->as_string().find('=') != std::string::npos) {
    expect(name == nullptr ? Json() : *name, "the name of an environment variable",
           path.member("name"), errors);
  }
  const Json* value = entry.find("value");
  if (value != nullptr && !value->is_null() && !value->is_string()) {
    expect(*value, "a text; put it in quotes", path.member("value"), errors);
  }
}

void check_amounts(const Json& resources, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view kind : {"requests", "limits"}) {
    const Json* amounts = resources.find(kind);
    const FieldPath place = path.member(kind);
    if (!is_map(amounts, place, errors)) continue;
    for (const auto& [name, amount] : amounts->as_object()) {
      if (amount.is_null()) continue;
      const bool fits = amount.is_number()
                            ? amount.as_double() >= 0
                            : amount.is_string() && parse_quantity(amount.as_string()).ok() &&
                                  *parse_quantity(amount.as_string()) >= 0;
      if (!fits) expect(amount, "a number such as 2, 500m or 4Gi", place.member(name), errors);
    }
  }
}

void check_pod_template(const Json& pod_template, const FieldPath& path, FieldErrors& errors) {
  if (const std::size_t size = pod_template.dump().size(); size > kLargestTemplate) {
    errors.add(path, "found " + std::to_string(size) + " bytes, expected at most " +
                         std::to_string(kLargestTemplate));
    return;
  }
  const Json* pod_spec = pod_template.find("spec");
  const Json* containers = pod_spec == nullptr ? nullptr : pod_spec->find("containers");
  const FieldPath spec_path = path.member("spec");
  const FieldPath list_path = spec_path.member("containers");
  if (containers == nullptr || !containers->is_array() || containers->as_array().empty() ||
      containers->as_array().size() > kMostContainers) {
    errors.add(list_path, containers == nullptr
                              ? "is missing; expected template: {spec: {containers: [{name: trial, "
                                "command: [...]}]}}"
                              : "found " + describe(*containers) + ", expected a list of 1 to " +
                                    std::to_string(kMostContainers));
    return;
  }
  const Json::Array& list = containers->as_array();
  const Json* const trial = trial_container(pod_template);
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_container(list[i], &list[i] == trial, list_path.item(i), errors);
  }
  check_container_names(list, list_path, errors);
}

}  // namespace fettle::api
