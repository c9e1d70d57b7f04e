#include "cli/convert/katib_placeholders.h"

#include <algorithm>
#include <array>
#include <set>

#include "api/fields/field.h"
#include "api/study/parameter_env.h"

namespace fettle::cli {
namespace {

constexpr std::string_view kOpen = "${trialParameters.";
constexpr std::string_view kMetaOpen = "${trialSpec.";
constexpr std::string_view kNamespaceVariable = "KATIB_TRIAL_NAMESPACE";
constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "dash", "ash", "zsh", "ksh"};

// ${trialSpec.Labels[key]}: the text at `key` of a map in the object's metadata.
std::optional<std::string> text_at(std::string_view reference, std::string_view name,
                                   const Source& texts, SourceReader& reader) {
  const std::string open = std::string(name) + '[';
  if (!reference.starts_with(open) || !reference.ends_with(']')) return std::nullopt;
  reference.remove_prefix(open.size());
  reference.remove_suffix(1);
  return reader.text(texts.member(reference));
}

// Returns the text for metadata of the trial, such as Name of ${trialSpec.Name}.
std::optional<Placeholder> metadata_placeholder(std::string_view reference, const Source& job,
                                                KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  if (reference == "Name") return Placeholder{"$(FETTLE_TRIAL_NAME)"};
  if (reference == "Namespace") {
    if (!draft.metadata_namespace.empty()) return Placeholder{draft.metadata_namespace, true};
    return Placeholder{"$(" + std::string(kNamespaceVariable) + ")"};
  }
  std::optional<std::string> text;
  const Source metadata = job.member("metadata");
  if (reference == "Kind") text = reader.text(job.member("kind"));
  if (reference == "APIVersion") text = reader.text(job.member("apiVersion"));
  if (!text) text = text_at(reference, "Labels", metadata.member("labels"), reader);
  if (!text) text = text_at(reference, "Annotations", metadata.member("annotations"), reader);
  if (!text) return std::nullopt;
  return Placeholder{*text, true};
}

std::optional<Placeholder> placeholder_of(const Source& at, const Source& job, KatibDraft& draft) {
  const std::string reference = draft.reader.text(at).value_or("");
  if (reference.starts_with(kMetaOpen) && reference.ends_with('}')) {
    const std::string_view inner = std::string_view(reference).substr(
        kMetaOpen.size(), reference.size() - kMetaOpen.size() - 1);
    const auto found = metadata_placeholder(inner, job, draft);
    if (!found)
      draft.reader.fail(
          at, "found " + api::describe(Json(reference)) + ", which the template does not have");
    return found;
  }
  if (!reference.empty() && reference == draft.resource) {
    return Placeholder{"$(FETTLE_UNTIL_STEP)"};
  }
  const auto parameter = draft.parameters.find(reference);
  if (parameter == draft.parameters.end()) {
    draft.reader.fail(
        at, "found " + api::describe(Json(reference)) + ", expected the name of a parameter");
    return std::nullopt;
  }
  return Placeholder{"$(" + api::parameter_env_name(parameter->second) + ")"};
}

// A walk over a pod template.
class Replacer {
 public:
  Replacer(const Placeholders& known, KatibDraft& draft) : known_(known), draft_(draft) {}

  // `expands`: Kubernetes replaces $(NAME) here.
  void walk(Json& value, const Source& at, bool expands) {
    if (value.is_string()) return replace_in(value, at, expands);
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        walk(value.as_array()[i], at.item(i), expands);
      }
    }
    if (!value.is_object()) return;
    for (auto& [name, member] : value.as_object()) walk(member, at.member(name), expands);
  }

  void container(Json& value, const Source& at) {
    if (!value.is_object()) return;
    for (auto& [name, member] : value.as_object()) {
      const Source inner = at.member(name);
      if (name == "command" || name == "args") note_shell(value, member, inner);
      if (name == "env") {
        variables(member, inner);
      } else {
        walk(member, inner, name == "command" || name == "args");
      }
    }
  }

  bool uses_namespace() const { return uses_namespace_; }

 private:
  void variables(Json& env, const Source& at) {
    if (!env.is_array()) return;
    for (std::size_t i = 0; i < env.as_array().size(); ++i) {
      Json& entry = env.as_array()[i];
      if (!entry.is_object()) continue;
      for (auto& [name, member] : entry.as_object()) {
        walk(member, at.item(i).member(name), name == "value");
      }
    }
  }

  void replace_in(Json& value, const Source& at, bool expands) {
    std::string out;
    std::string_view rest = value.as_string();
    for (;;) {
      const std::size_t open = rest.find(kOpen);
      const std::size_t end = open == rest.npos ? rest.npos : rest.find('}', open);
      if (end == rest.npos) break;
      const std::string name(rest.substr(open + kOpen.size(), end - open - kOpen.size()));
      out += rest.substr(0, open);
      out += text_for(name, at, expands);
      rest.remove_prefix(end + 1);
    }
    out += rest;
    value = Json(std::move(out));
  }

  std::string text_for(const std::string& name, const Source& at, bool expands) {
    const auto found = known_.find(name);
    if (found == known_.end()) {
      draft_.reader.fail(at, "found ${trialParameters." + api::clean_text(name, 60) +
                                 "}, which trialParameters does not declare");
      return "";
    }
    const Placeholder& known = found->second;
    if (!expands && !known.is_constant) {
      draft_.reader.fail(at, "holds ${trialParameters." + api::clean_text(name, 60) +
                                 "}; Kubernetes replaces a parameter only in the command, the args "
                                 "and the env of the container that trains");
    }
    if (known.text.find(kNamespaceVariable) != std::string::npos) uses_namespace_ = true;
    return known.text;
  }

  // A value inside a script is read by the shell, as it was under Katib.
  void note_shell(const Json& container, const Json& words, const Source& at) {
    if (!words.is_array()) return;
    const Json* command = container.find("command");
    const Json::Array& first =
        command != nullptr && command->is_array() ? command->as_array() : words.as_array();
    if (first.empty() || !first[0].is_string() || !is_shell(first[0].as_string())) return;
    for (std::size_t i = 0; i < words.as_array().size(); ++i) {
      const Json& word = words.as_array()[i];
      const bool has_one = word.is_string() && word.as_string().find(kOpen) != std::string::npos;
      if (!has_one) continue;
      draft_.reader.note(at.item(i), "spec.trial.template.spec.containers[0]",
                         "a value is put into the shell's script before the shell reads it, as "
                         "under Katib; \"$FETTLE_PARAM_NAME\" is safe for any text");
      return;
    }
  }

  static bool is_shell(std::string_view program) {
    return std::ranges::find(kShells, program.substr(program.rfind('/') + 1)) != kShells.end();
  }

  const Placeholders& known_;
  KatibDraft& draft_;
  bool uses_namespace_ = false;
};

// The variables of a container are read in their order, so this one comes first.
void add_namespace(Json& container) {
  Json entry = Json::object({{"name", kNamespaceVariable}});
  entry.set("valueFrom",
            Json::object({{"fieldRef", Json::object({{"fieldPath", "metadata.namespace"}})}}));
  Json::Array env{std::move(entry)};
  if (const Json* others = container.find("env"); others != nullptr && others->is_array()) {
    for (const Json& other : others->as_array()) env.push_back(other);
  }
  container.set("env", std::move(env));
}

}  // namespace

Placeholders read_placeholders(const Source& trial_template, const Source& job, KatibDraft& draft) {
  Placeholders out;
  for (const Source& entry : draft.reader.items(trial_template.member("trialParameters"))) {
    if (!draft.reader.is_map(entry)) continue;
    const auto name = draft.reader.text(entry.member("name"));
    const auto found = placeholder_of(entry.member("reference"), job, draft);
    if (name && found) out[*name] = *found;
  }
  return out;
}

void replace_placeholders(Json& pod_template, const Source& at, const Placeholders& known,
                          KatibDraft& draft) {
  Replacer replacer(known, draft);
  for (auto& [name, member] : pod_template.as_object()) {
    if (name != "spec" || !member.is_object()) {
      replacer.walk(member, at.member(name), false);
      continue;
    }
    for (auto& [field, value] : member.as_object()) {
      const Source inner = at.member(name).member(field);
      if (field != "containers" || !value.is_array()) {
        replacer.walk(value, inner, false);
        continue;
      }
      for (std::size_t i = 0; i < value.as_array().size(); ++i) {
        Json& container = value.as_array()[i];
        if (i == 0) {
          replacer.container(container, inner.item(i));
        } else {
          replacer.walk(container, inner.item(i), false);
        }
      }
    }
  }
  if (!replacer.uses_namespace()) return;
  add_namespace(pod_template.find("spec")->find("containers")->as_array()[0]);
}

}  // namespace fettle::cli
