#include "runtime/kubernetes/pod/pod_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/study/pod_template.h"
#include "api/study/resolve.h"
#include "core/names.h"
#include "core/trial/meeting.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/pod/trainer_pod.h"
#include "runtime/kubernetes/pod/volume_claim.h"
#include "runtime/make_trial_file.h"
#include "runtime/trial_variables.h"

namespace fettle::kubernetes {
namespace {

using kube::append;
using kube::map_of;

constexpr const char* kTrialVolume = "fettle-trial";
constexpr const char* kCheckpointVolume = "fettle-checkpoints";
constexpr const char* kJobUidField = "metadata.labels['batch.kubernetes.io/controller-uid']";
constexpr const char* kRankField = "metadata.labels['batch.kubernetes.io/job-completion-index']";

// Escapes $ so that Kubernetes does not expand $(NAME).
std::string escape_dollars(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '$') out += c;
  }
  return out;
}

Json variable(const std::string& name, std::string_view value) {
  return Json::object({{"name", name}, {"value", escape_dollars(value)}});
}

Json field_variable(const std::string& name, const char* field) {
  return Json::object(
      {{"name", name},
       {"valueFrom", Json::object({{"fieldRef", Json::object({{"fieldPath", field}})}})}});
}

void add_rendezvous(const api::Study& study, const api::Trial& trial, const std::string& job,
                    Json& env) {
  const std::string workers = std::to_string(trial.spec.workers);
  const std::string master = job + "-0." + service_of(study);
  const std::string port = std::to_string(kRendezvousPort);
  env.push_back(variable("MASTER_ADDR", master));
  env.push_back(variable("MASTER_PORT", port));
  env.push_back(field_variable("RANK", kRankField));
  env.push_back(variable("WORLD_SIZE", workers));
  env.push_back(variable("LOCAL_RANK", "0"));
  // PET_: the defaults of torchrun's options.
  env.push_back(variable("PET_MASTER_ADDR", master));
  env.push_back(variable("PET_MASTER_PORT", port));
  env.push_back(field_variable("PET_NODE_RANK", kRankField));
  env.push_back(variable("PET_NNODES", workers));
  // The Job's uid: random, the same for all its pods and for no others.
  env.push_back(field_variable("FETTLE_RENDEZVOUS_TOKEN", kJobUidField));
  env.push_back(variable("FETTLE_RENDEZVOUS_SECONDS", std::to_string(core::kMeetingMs / 1000)));
}

Result<Json> trial_environment(const api::Study& study, const api::Trial& trial,
                               const api::TrialFile& file, const std::string& job) {
  Json env = Json::array();
  FETTLE_ASSIGN(const auto variables, runtime::trial_variables(file, kTrialFile));
  for (const auto& [name, value] : variables) env.push_back(variable(name, value));
  env.push_back(field_variable("FETTLE_POD_UID", "metadata.uid"));
  // Python buffers 8 KiB of output to a pipe: a trial would seem silent.
  if (!study.spec.trial.trainer) env.push_back(variable("PYTHONUNBUFFERED", "1"));
  if (is_distributed(study)) add_rendezvous(study, trial, job, env);
  // torchrun starts one process per GPU, as fettle-trainer does.
  const std::int64_t gpus = api::whole_gpus(study.spec.trial);
  if (is_distributed(study) || gpus > 1) {
    env.push_back(variable("PET_NPROC_PER_NODE", std::to_string(gpus)));
  }
  return env;
}

bool is_named(const Json& entry, const Json& name) {
  const Json* const found = entry.find("name");
  return found != nullptr && *found == name;
}

// Fettle's variables come first, so that the user's may refer to them; if names are equal the
// user's wins.
void add_environment(Json ours, Json& container) {
  Json env = Json::array();
  const Json::Array& theirs = kube::array_at(container, {"env"});
  for (Json& entry : ours.as_array()) {
    const Json name = *entry.find("name");
    const bool taken =
        std::ranges::any_of(theirs, [&](const Json& other) { return is_named(other, name); });
    if (!taken) env.push_back(std::move(entry));
  }
  for (const Json& entry : theirs) env.push_back(entry);
  container.set("env", std::move(env));
}

// The trial file is mounted as a single file (subPath), because the checkpoints are mounted beside
// it and nothing can be mounted below a read-only volume.
void add_volumes(const api::Study& study, Json& pod_spec, Json& container) {
  const Json file =
      Json::object({{"path", "trial.json"},
                    {"fieldRef", Json::object({{"fieldPath", std::string("metadata.annotations['") +
                                                                 kTrialFileAnnotation + "']"}})}});
  append(pod_spec, "volumes",
         Json::object({{"name", kTrialVolume},
                       {"downwardAPI", Json::object({{"items", Json::Array{file}}})}}));
  append(container, "volumeMounts",
         Json::object({{"name", kTrialVolume},
                       {"mountPath", kTrialFile},
                       {"subPath", "trial.json"},
                       {"readOnly", true}}));
  Json checkpoints = Json::object({{"name", kCheckpointVolume}});
  if (const std::string claim = volume_claim_of(study); !claim.empty()) {
    checkpoints.set("persistentVolumeClaim", Json::object({{"claimName", claim}}));
  } else {
    checkpoints.set("emptyDir", Json::object());
  }
  append(pod_spec, "volumes", std::move(checkpoints));
  append(container, "volumeMounts",
         Json::object({{"name", kCheckpointVolume}, {"mountPath", kCheckpoints}}));
}

// The part of a card that each worker has; absent if it has whole cards, or none.
std::optional<api::GpuPart> part_of(const std::optional<GpuPlacement>& gpus) {
  if (!gpus || !gpus->is_share()) return std::nullopt;
  return api::GpuPart{gpus->gpus, gpus->memory, gpus->sharing, gpus->enforces};
}

void add_metadata(const api::Study& study, const api::Trial& trial, std::int64_t run,
                  const api::TrialFile& file, Json& pod_template) {
  Json& metadata = map_of(pod_template, "metadata");
  Json& labels = map_of(metadata, "labels");
  labels.set(core::kStudyLabel, study.metadata.name);
  labels.set(kTrialLabel, trial.metadata.name);
  labels.set(kRunLabel, std::to_string(run));
  map_of(metadata, "annotations").set(kTrialFileAnnotation, api::write_trial_file(file).dump());
}

void add_lifecycle(const api::Study& study, Json& spec, Json& container) {
  spec.set("restartPolicy", "Never");
  if (spec.find("terminationGracePeriodSeconds") == nullptr) {
    spec.set("terminationGracePeriodSeconds",
             static_cast<std::int64_t>(std::ceil(study.spec.trial.grace_period)));
  }
  if (is_distributed(study)) spec.set("subdomain", service_of(study));
  // A container that fails without a message is then explained by its last lines of output.
  if (container.find("terminationMessagePolicy") == nullptr) {
    container.set("terminationMessagePolicy", "FallbackToLogsOnError");
  }
}

}  // namespace

namespace {

// Limits ordinary reports of all running trials to fewer than 50 writes a second. Absent: the Study
// alone decides, as in the trainer without this value (trainer/reporter/pace.h).
std::optional<double> report_seconds(const api::Study& study, const JobOptions& options) {
  constexpr double kReportsPerSecond = 50;
  constexpr double kLeastSeconds = 5;
  const auto runs = static_cast<double>(options.concurrent_runs);
  if (options.concurrent_runs <= static_cast<std::size_t>(study.spec.budget.parallelism) ||
      runs / kReportsPerSecond <= kLeastSeconds) {
    return std::nullopt;
  }
  return runs / kReportsPerSecond;
}

}  // namespace

bool is_distributed(const api::Study& study) { return study.spec.trial.workers.max > 1; }

Result<Json> build_pod_template(const api::Study& study, const api::Trial& trial, std::int64_t run,
                                const std::string& job, const JobOptions& options) {
  FETTLE_ASSIGN(const auto gpus, place_gpus(study.spec, options.gpu_profiles));
  FETTLE_ASSIGN(api::TrialFile file, runtime::make_trial_file(study, trial, run, kCheckpoints));
  file.gpu_part = part_of(gpus);
  if (gpus) file.grace_period = std::max(file.grace_period, gpus->least_grace);
  FETTLE_ASSIGN(Json env, trial_environment(study, trial, file, job));
  Json pod_template = study.spec.trial.pod_template;
  if (study.spec.trial.trainer) {
    file.report_seconds = report_seconds(study, options);
    file.heartbeat = study.spec.trial.heartbeat;
    FETTLE_ASSIGN(pod_template, trainer_pod(study, options));
  }
  if (api::trial_container(pod_template) == nullptr) {
    return invalid("spec.trial.template.spec.containers: expected at least one container");
  }
  add_metadata(study, trial, run, file, pod_template);  // writes `file`, which is complete now
  Json& spec = *pod_template.find("spec");
  Json& container = *api::trial_container(pod_template);
  add_lifecycle(study, spec, container);
  add_environment(std::move(env), container);
  add_volumes(study, spec, container);
  // Last, because it raises the grace period and keeps the variables that are set.
  if (gpus) FETTLE_TRY(apply(*gpus, study, pod_template, container));
  return pod_template;
}

}  // namespace fettle::kubernetes
