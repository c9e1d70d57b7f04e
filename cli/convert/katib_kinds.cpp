// The kinds of objects that Katib starts as trials: which of them is a pod template, and how many
// pods a trial has.
#include <algorithm>
#include <array>

#include "api/fields/field.h"
#include "cli/convert/katib_parts.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMostWorkers = 1024;
constexpr std::int64_t kMostRetries = 100;
constexpr std::int64_t kMostSeconds = 10LL * 365 * 86400;

struct Refused {
  std::string_view kind;
  std::string_view why;
};
constexpr std::array<Refused, 8> kRefused{{
    {"MPIJob",
     "starts its workers by mpirun over SSH; Fettle's workers find each other by MASTER_ADDR and "
     "RANK"},
    {"TFJob",
     "describes its replicas in TF_CONFIG, which Fettle does not write; workers find each other by "
     "MASTER_ADDR and RANK"},
    {"XGBoostJob",
     "has a master with another role than its workers; Fettle's workers are equal, with "
     "MASTER_ADDR and RANK"},
    {"PaddleJob", "describes its replicas in PADDLE_ variables, which Fettle does not write"},
    {"JAXJob", "describes its replicas in COORDINATOR_ variables, which Fettle does not write"},
    {"RayJob", "starts a Ray cluster of its own, of which no pod is the trial"},
    {"Workflow", "is a pipeline of Argo with several steps; a trial is one program"},
    {"PipelineRun", "is a pipeline of Tekton with several tasks; a trial is one program"},
}};

void refuse(const Source& job, const std::string& kind, SourceReader& reader) {
  const auto found = std::ranges::find(kRefused, kind, &Refused::kind);
  const std::string why =
      found == kRefused.end() ? "has no pod template that Fettle knows" : std::string(found->why);
  reader.fail(job.member("kind"), "a trial of kind " + api::clean_text(kind, 40) +
                                      " cannot be converted: it " + why +
                                      ". Kinds that can: Job, PyTorchJob, TrainJob");
}

void set_timeout(const Source& seconds, KatibDraft& draft) {
  const auto found = draft.reader.whole(seconds, 1, kMostSeconds);
  if (found) draft.trial.set("timeout", std::to_string(*found) + 's');
}

void set_retries(const Source& limit, KatibDraft& draft) {
  const auto found = draft.reader.whole(limit, 0, 1'000'000);
  if (found) draft.trial.set("retries", std::min(*found, kMostRetries));
}

// Kueue reads the queue from labels of the Job, Fettle from the Study.
void take_queue(const Source& labels, KatibDraft& draft) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLabels{
      {{"kueue.x-k8s.io/queue-name", "queue"},
       {"kueue.x-k8s.io/priority-class", "queuePriorityClass"}}};
  for (const auto& [label, field] : kLabels) {
    const auto value = draft.reader.text(labels.member(label));
    if (value) draft.trial.set(field, *value);
  }
}

// Metadata of the object itself, as opposed to that of its pods.
void lose_metadata(const Source& job, KatibDraft& draft) {
  const Source metadata = job.member("metadata");
  for (const std::string_view field : {"labels", "annotations"}) {
    const Source texts = metadata.member(field);
    if (!draft.reader.is_map(texts)) continue;
    if (field == "labels") take_queue(texts, draft);
    const bool lost = std::ranges::any_of(texts.value->as_object(), [](const auto& member) {
      return !member.first.starts_with("kueue.x-k8s.io/");
    });
    if (!lost) continue;
    draft.reader.note(texts, "spec.trial.template",
                      "the " + std::string(field) +
                          " of the object are lost: what the pods need of them belongs to the "
                          "template's own metadata");
  }
}

std::optional<KatibPods> convert_job(const Source& job, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const Source spec = job.member("spec");
  for (const std::string_view field : {"completions", "parallelism"}) {
    const auto pods = reader.whole(spec.member(field), 0, 1'000'000);
    if (!pods || *pods == 1) continue;
    reader.note(spec.member(field), "spec.trial",
                std::string(field) +
                    " is lost: a trial has one pod, or workers that train "
                    "together (spec.trial.workers)");
  }
  set_retries(spec.member("backoffLimit"), draft);
  set_timeout(spec.member("activeDeadlineSeconds"), draft);
  reader.lose_others(
      spec,
      {"template", "completions", "parallelism", "backoffLimit", "activeDeadlineSeconds",
       "ttlSecondsAfterFinished", "suspend", "manualSelector", "selector"},
      "spec.trial");
  return KatibPods{spec.member("template"), Json(), 1};
}

void convert_run_policy(const Source& policy, KatibDraft& draft) {
  set_retries(policy.member("backoffLimit"), draft);
  set_timeout(policy.member("activeDeadlineSeconds"), draft);
  draft.reader.lose_others(policy,
                           {"backoffLimit", "activeDeadlineSeconds", "cleanPodPolicy",
                            "ttlSecondsAfterFinished", "suspend"},
                           "spec.trial");
}

// Adds the replicas of one role; returns its template.
Source add_replicas(const Source& role, std::int64_t& workers, SourceReader& reader) {
  if (!reader.is_map(role)) return {};
  workers += reader.whole(role.member("replicas"), 0, kMostWorkers).value_or(1);
  return role.member("template");
}

std::optional<KatibPods> convert_pytorch(const Source& job, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const Source spec = job.member("spec");
  const Source roles = spec.member("pytorchReplicaSpecs");
  std::int64_t workers = 0;
  const Source master = add_replicas(roles.member("Master"), workers, reader);
  const Source worker = add_replicas(roles.member("Worker"), workers, reader);
  if (!master.present() && !worker.present()) {
    reader.fail(roles, "expected a Master or Workers, each with a template");
    return std::nullopt;
  }
  if (master.present() && worker.present() && !(*master.value == *worker.value)) {
    reader.note(roles.member("Worker"), "spec.trial.template",
                "the Workers' template differs from the Master's; all workers of a trial have one "
                "template, which is the Master's");
  }
  convert_run_policy(spec.member("runPolicy"), draft);
  reader.lose_others(spec, {"pytorchReplicaSpecs", "runPolicy"}, "spec.trial.workers");
  reader.lose_others(roles, {"Master", "Worker"}, "spec.trial.workers");
  return KatibPods{master.present() ? master : worker, Json(), std::max<std::int64_t>(workers, 1)};
}

// The trainer of a TrainJob as a container.
Json container_of(const Source& trainer, const std::string& name, SourceReader& reader) {
  Json out = Json::object({{"name", name}});
  for (const std::string_view field : {"image", "command", "args", "env"}) {
    const Source at = trainer.member(field);
    if (at.present()) out.set(field, *at.value);
  }
  const Source resources = trainer.member("resourcesPerNode");
  if (reader.is_map(resources)) out.set("resources", *resources.value);
  return out;
}

std::optional<KatibPods> convert_trainjob(const Source& job, const std::string& name,
                                          KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const Source spec = job.member("spec");
  const Source trainer = spec.member("trainer");
  if (!trainer.member("image").present()) {
    reader.fail(trainer.member("image"),
                "is missing; the image is in the runtime, which is an object of the cluster: name "
                "it here");
    return std::nullopt;
  }
  reader.note(spec.member("runtimeRef"), "spec.trial.template",
              "the runtime is an object of the cluster and was not read: what it adds to the pods "
              "(volumes, variables, a launcher) is lost");
  KatibPods out;
  out.workers = reader.whole(trainer.member("numNodes"), 1, kMostWorkers).value_or(1);
  Json pod_spec = Json::object();
  pod_spec.set("containers", Json::Array{container_of(trainer, name, reader)});
  out.built = Json::object({{"spec", std::move(pod_spec)}});
  out.pod_template = trainer;
  reader.lose_others(spec, {"runtimeRef", "trainer", "suspend", "managedBy"},
                     "spec.trial.template");
  reader.lose_others(trainer, {"image", "command", "args", "env", "numNodes", "resourcesPerNode"},
                     "spec.trial.template");
  return out;
}

}  // namespace

std::optional<KatibPods> convert_kind(const Source& job, const std::string& container,
                                      KatibDraft& draft) {
  const Source at = job.member("kind");
  const std::string kind = draft.reader.text(at).value_or("");
  if (kind.empty()) {
    draft.reader.fail(at, "is missing; expected Job, PyTorchJob or TrainJob");
    return std::nullopt;
  }
  std::optional<KatibPods> pods;
  if (kind == "Job") {
    pods = convert_job(job, draft);
  } else if (kind == "PyTorchJob") {
    pods = convert_pytorch(job, draft);
  } else if (kind == "TrainJob") {
    pods = convert_trainjob(job, container.empty() ? "trainer" : container, draft);
  } else {
    refuse(job, kind, draft.reader);
  }
  if (pods) lose_metadata(job, draft);
  return pods;
}

}  // namespace fettle::cli
