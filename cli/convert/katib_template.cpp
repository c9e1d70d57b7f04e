// An Experiment's trial template: the pods of a trial, without the fields that Fettle itself sets.
#include <algorithm>
#include <array>
#include <cmath>

#include "api/fields/field.h"
#include "api/study/pod_template.h"
#include "api/yaml/yaml_reader.h"
#include "cli/convert/katib_parts.h"
#include "cli/convert/katib_placeholders.h"

namespace fettle::cli {
namespace {

constexpr const char* kTemplate = "spec.trial.template";
constexpr std::string_view kKatibPrefix = "katib.kubeflow.org/";
constexpr std::string_view kGpus = "nvidia.com/gpu";

// Katib's defaults: they say what the exit code of a container says.
constexpr std::array<std::string_view, 4> kUsualConditions = {
    R"(status.conditions.#(type=="Complete")#|#(status=="True")#)",
    R"(status.conditions.#(type=="Succeeded")#|#(status=="True")#)",
    R"(status.conditions.#(type=="Failed")#|#(status=="True")#)", ""};

// The object that Katib would start, read from a ConfigMap.
std::optional<Json> read_config_map(const Source& at, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const std::string name = reader.text(at.member("configMapName")).value_or("");
  const std::string key = reader.text(at.member("templatePath")).value_or("");
  std::optional<std::string> text;
  if (draft.options.config_map) text = draft.options.config_map(name, key);
  if (!text) {
    reader.fail(at, "the template is in ConfigMap " + api::clean_text(name, 63) + ", at " +
                        api::clean_text(key, 63) +
                        ", which is not among the files: write it to one (kubectl get configmap " +
                        api::clean_text(name, 63) + " -o yaml), and name both files");
    return std::nullopt;
  }
  const auto foreign = api::find_foreign_byte(*text);
  const api::ReadYaml read = foreign ? api::ReadYaml{{}, {*foreign}} : api::read_yaml(*text);
  if (read.errors.empty() && read.documents.size() == 1) return read.documents[0].value();
  reader.fail(at, "the template in the ConfigMap is not one YAML document" +
                      (read.errors.empty() ? "" : ": " + read.errors[0].message));
  return std::nullopt;
}

// Puts the container that trains in front, where Fettle looks for it.
void choose_container(Json::Array& containers, const Source& name, const Source& at,
                      SourceReader& reader) {
  const bool is_given = name.present();
  const std::string wanted = reader.text(name).value_or(api::kTrialContainer);
  const auto is_named = [](std::string_view text) {
    return [text](const Json& container) {
      const Json* found = container.find("name");
      return found != nullptr && *found == Json(text);
    };
  };
  const auto found = std::ranges::find_if(containers, is_named(wanted));
  if (found != containers.end()) {
    std::rotate(containers.begin(), found, found + 1);
  } else if (is_given) {
    reader.note(
        name, "spec.trial.template.spec.containers[0]",
        "there is no container " + api::clean_text(wanted, 63) + "; the first one is the trial");
  }
  // Fettle prefers a container of this name to the first.
  const auto rival = std::ranges::find_if(containers, is_named(api::kTrialContainer));
  if (rival != containers.end() && rival != containers.begin()) {
    reader.fail(at, std::string("a container beside the one that trains is named ") +
                        api::kTrialContainer + ", which Fettle would take for it; rename it");
  }
}

// Whole GPUs are asked for by the Study, so that they are counted and a reason is said for waiting.
void take_gpus(Json& container, KatibDraft& draft) {
  Json* const resources = container.find("resources");
  Json* const limits = resources == nullptr ? nullptr : resources->find("limits");
  const Json* const amount = limits == nullptr ? nullptr : limits->find(kGpus);
  if (amount == nullptr) return;
  SourceReader strict;
  const auto count = strict.whole({amount, ""}, 1, 64);
  if (!count) return;  // validation, or the API server, refuses it
  draft.trial.set("gpu", Json::object({{"count", *count}}));
  for (const std::string_view kind : {"limits", "requests"}) {
    Json* const amounts = resources->find(kind);
    if (amounts == nullptr || !amounts->is_object()) continue;
    amounts->erase(kGpus);
    if (amounts->as_object().empty()) resources->erase(kind);
  }
  if (resources->as_object().empty()) container.erase("resources");
}

// A word that is the path, or ends with =PATH.
bool names_path(const std::string& word, const std::string& path) {
  std::string_view text = word;
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  return text == path || text.ends_with('=' + path);
}

bool redirect_words(Json& container, const std::string& path, const std::string& to) {
  bool found = false;
  for (const std::string_view list : {"command", "args"}) {
    Json* const words = container.find(list);
    if (words == nullptr || !words->is_array()) continue;
    for (Json& word : words->as_array()) {
      if (!word.is_string() || !names_path(word.as_string(), path)) continue;
      const std::string& text = word.as_string();
      const std::size_t end = text.find_last_not_of('/') + 1;
      word = Json(text.substr(0, end - path.size()) + to);
      found = true;
    }
  }
  return found;
}

void redirect(Json& container, KatibDraft& draft) {
  for (const Redirect& one : draft.redirects) {
    std::string path = one.path;
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    const bool done = path.size() > 1 && redirect_words(container, path, one.to);
    draft.reader.note(one.source, one.target, done ? one.done : one.missed);
  }
}

// Removes what only Katib reads.
void clean_metadata(Json& pod_template) {
  Json* const metadata = pod_template.find("metadata");
  if (metadata == nullptr || !metadata->is_object()) return;
  metadata->erase("creationTimestamp");
  for (const std::string_view field : {"labels", "annotations"}) {
    Json* const texts = metadata->find(field);
    if (texts == nullptr || !texts->is_object()) continue;
    std::erase_if(texts->as_object(),
                  [](const auto& member) { return member.first.starts_with(kKatibPrefix); });
    if (texts->as_object().empty()) metadata->erase(field);
  }
  if (metadata->as_object().empty()) pod_template.erase("metadata");
}

void convert_pod(Json pod, const KatibPods& pods, const Placeholders& placeholders,
                 const Source& name, KatibDraft& draft) {
  Json* const spec = pod.find("spec");
  Json* const containers = spec == nullptr ? nullptr : spec->find("containers");
  const Source at = pods.pod_template.member("spec").member("containers");
  if (containers == nullptr || !containers->is_array() || containers->as_array().empty()) {
    return draft.reader.fail(at, "is missing; expected a pod template with containers");
  }
  choose_container(containers->as_array(), name, at, draft.reader);
  Json& trial = containers->as_array()[0];
  if (!trial.is_object()) return draft.reader.fail(at.item(0), "expected a container");
  take_gpus(trial, draft);
  redirect(trial, draft);
  spec->erase("restartPolicy");  // a run is one pod; retries are trial.retries
  clean_metadata(pod);
  replace_placeholders(pod, pods.pod_template, placeholders, draft);
  if (pods.workers > 1) {
    Json workers = Json::object({{"min", pods.workers}});
    workers.set("max", pods.workers);
    draft.trial.set("workers", std::move(workers));
  }
  draft.trial.set("template", std::move(pod));
}

void note_conditions(const Source& trial_template, SourceReader& reader) {
  for (const std::string_view field : {"successCondition", "failureCondition"}) {
    const Source at = trial_template.member(field);
    const auto condition = reader.text(at);
    if (!condition || std::ranges::find(kUsualConditions, *condition) != kUsualConditions.end()) {
      continue;
    }
    reader.note(at, kTemplate,
                "a condition on the object is lost: a run has succeeded if its container exits "
                "with 0 and has reported the metric");
  }
}

void note_losses(const Source& trial_template, SourceReader& reader) {
  note_conditions(trial_template, reader);
  const Source retain = trial_template.member("retain");
  if (retain.present() && *retain.value == Json(true)) {
    reader.note(retain, kTemplate,
                "retain is lost: the Job of a trial is deleted once its result is stored");
  }
  reader.lose_others(trial_template,
                     {"trialSpec", "configMap", "trialParameters", "primaryPodLabels",
                      "primaryContainerName", "successCondition", "failureCondition", "retain"},
                     kTemplate);
}

}  // namespace

void convert_template(const Source& spec, KatibDraft& draft) {
  const Source at = spec.member("trialTemplate");
  SourceReader& reader = draft.reader;
  if (!at.present()) return reader.fail(at, "is missing; expected trialSpec, the object to run");
  if (!reader.is_map(at)) return;
  Source job = at.member("trialSpec");
  std::optional<Json> read;
  if (const Source map = at.member("configMap"); !job.present() && map.present()) {
    read = read_config_map(map, draft);
    if (!read) return;
    job = {&*read, map.path};
  }
  if (!job.present()) return reader.fail(job, "is missing; expected the object to run");
  if (!reader.is_map(job)) return;
  const Source name = at.member("primaryContainerName");
  const auto pods = convert_kind(job, reader.text(name).value_or(""), draft);
  if (!pods) return;
  const Placeholders placeholders = read_placeholders(at, job, draft);
  const Json* const pod = pods->built.is_null() ? pods->pod_template.value : &pods->built;
  if (pod == nullptr || !pod->is_object()) {
    return reader.fail(pods->pod_template, "expected a pod template");
  }
  convert_pod(*pod, *pods, placeholders, name, draft);
  note_losses(at, reader);
}

}  // namespace fettle::cli
