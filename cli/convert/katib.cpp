#include "cli/convert/katib.h"

#include <utility>

#include "api/fields/field.h"
#include "api/study/study_rules.h"
#include "cli/convert/katib_parts.h"

namespace fettle::cli {
namespace {

constexpr std::string_view kGroup = "kubeflow.org/";
constexpr std::string_view kVersion = "kubeflow.org/v1beta1";
// kubectl writes the whole document into this annotation.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// Fields that an API server fills in are no loss.
Json metadata_of(const Source& metadata, KatibDraft& draft) {
  Json out = Json::object();
  SourceReader& reader = draft.reader;
  const Source name = metadata.member("name");
  if (!name.present()) {
    reader.fail(name,
                "is missing; expected the name of the Experiment, which its Study takes over");
    return out;
  }
  out.set("name", Json(reader.text(name)));
  if (const auto ns = reader.text(metadata.member("namespace"))) {
    out.set("namespace", *ns);
    draft.metadata_namespace = *ns;
  }
  for (const std::string_view field : {"labels", "annotations"}) {
    const Source texts = metadata.member(field);
    if (!reader.is_map(texts)) continue;
    Json kept = *texts.value;
    kept.erase(kLastApplied);
    if (!kept.as_object().empty()) out.set(field, std::move(kept));
  }
  return out;
}

// Architecture search has no parameters to vary: a suggestion is a whole network.
bool is_architecture_search(const Source& spec, KatibDraft& draft) {
  const Source nas = spec.member("nasConfig");
  const Source name = spec.member("algorithm").member("algorithmName");
  const bool named =
      name.present() && (*name.value == Json("enas") || *name.value == Json("darts"));
  if (!nas.present() && !named) return false;
  draft.reader.fail(nas.present() ? nas : name,
                    "is a search for an architecture (ENAS, DARTS), which Fettle does not do: it "
                    "varies parameters; declare the choices of the network as parameters, with "
                    "`when` where one depends on another");
  return true;
}

void convert_spec(const Source& spec, KatibDraft& draft) {
  if (is_architecture_search(spec, draft)) return;
  convert_objective(spec, draft);
  look_at_algorithm(spec, draft);
  convert_parameters(spec, draft);
  convert_budget(spec, draft);
  convert_algorithm(spec, draft);
  convert_early_stopping(spec, draft);
  convert_collector(spec, draft);
  convert_template(spec, draft);
  // A Study can always be resumed, so resumePolicy says nothing more.
  draft.reader.lose_others(spec,
                           {"objective", "parameters", "algorithm", "earlyStopping",
                            "trialTemplate", "metricsCollectorSpec", "parallelTrialCount",
                            "maxTrialCount", "maxFailedTrialCount", "resumePolicy", "nasConfig"},
                           "spec");
}

// Sets the fields in the order of docs/study.md, whatever the order of their conversion.
Json in_order(const Json& fields, std::initializer_list<std::string_view> names) {
  Json out = Json::object();
  for (const std::string_view name : names) {
    if (const Json* found = fields.find(name)) out.set(name, *found);
  }
  return out;
}

Json study_of(Json metadata, KatibDraft& draft) {
  draft.spec.set("trial",
                 in_order(draft.trial, {"metrics", "timeout", "retries", "checkpoints", "gpu",
                                        "workers", "queue", "queuePriorityClass", "template"}));
  Json study = Json::object();
  study.set("apiVersion", api::kApiVersion);
  study.set("kind", "Study");
  study.set("metadata", std::move(metadata));
  study.set("spec", in_order(draft.spec, {"objectives", "parameters", "resource", "algorithm",
                                          "earlyStopping", "budget", "trial"}));
  return study;
}

std::optional<std::string> group_version(const Json& document) {
  const Json* found = document.find("apiVersion");
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->as_string();
}

}  // namespace

bool is_katib_experiment(const Json& document) {
  const Json* kind = document.find("kind");
  const auto version = group_version(document);
  return kind != nullptr && *kind == Json("Experiment") && version && version->starts_with(kGroup);
}

Conversion convert_katib(const Json& experiment, const KatibOptions& options) {
  KatibDraft draft(options);
  const Source root{&experiment, ""};
  const auto version = group_version(experiment);
  if (!is_katib_experiment(experiment)) {
    const Source kind = root.member("kind");
    draft.reader.fail(kind, "found " + api::describe(kind.present() ? *kind.value : Json()) +
                                ", expected Experiment, with apiVersion " + std::string(kVersion));
  } else if (version != kVersion) {
    draft.reader.fail(root.member("apiVersion"),
                      "found " + api::describe(Json(version)) + ", expected " +
                          std::string(kVersion) +
                          "; let kubectl convert it: kubectl get experiment NAME -o yaml");
  }
  if (draft.reader.failed()) return draft.reader.take(Json());
  const Source spec = root.member("spec");
  Json metadata = metadata_of(root.member("metadata"), draft);
  if (!spec.present()) {
    draft.reader.fail(spec, "is missing; expected the fields of an Experiment");
  } else if (draft.reader.is_map(spec)) {
    convert_spec(spec, draft);
  }
  draft.reader.lose_others(root, {"apiVersion", "kind", "metadata", "spec", "status"}, "");
  Json study = draft.reader.failed() ? Json() : study_of(std::move(metadata), draft);
  return draft.reader.take(std::move(study));
}

}  // namespace fettle::cli
