#include "runtime/kubernetes/pod/trainer_pod.h"

#include <algorithm>

#include "api/fields/field_writer.h"
#include "api/study/pod_template.h"
#include "api/study/resolve.h"
#include "api/study/study_fields.h"
#include "kube/objects/json_write.h"
#include "runtime/kubernetes/pod/pod_builder.h"
#include "runtime/kubernetes/pod/pod_patch.h"
#include "runtime/kubernetes/pod/volume_claim.h"

namespace fettle::kubernetes {
namespace {

constexpr const char* kTokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr const char* kMemoryRequest = "512Mi";

// 65532 is the user of the trainer's image.
constexpr const char* kPodSecurity = R"({
  "runAsNonRoot": true,
  "runAsUser": 65532,
  "runAsGroup": 65532,
  "fsGroup": 65532,
  "fsGroupChangePolicy": "OnRootMismatch",
  "seccompProfile": {"type": "RuntimeDefault"}
})";
constexpr const char* kContainerSecurity = R"({
  "allowPrivilegeEscalation": false,
  "readOnlyRootFilesystem": true,
  "capabilities": {"drop": ["ALL"]}
})";
// The default token mount of a pod, but for this container only, and short-lived: the kubelet
// rotates the token before it expires, and a stolen one expires soon.
constexpr const char* kTokenVolume = R"({
  "name": "fettle-token",
  "projected": {
    "sources": [
      {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
      {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
      {"downwardAPI": {
        "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}
    ]
  }
})";

Json scratch_volume(const char* name) {
  return Json::object({{"name", name}, {"emptyDir", Json::object()}});
}

// Used by NCCL between GPUs without peer access; a container's default /dev/shm has 64 MiB.
constexpr const char* kSharedMemory = R"({"name": "fettle-shm", "emptyDir": {"medium": "Memory"}})";

Json mount(const char* name, const char* path) {
  return Json::object({{"name", name}, {"mountPath", path}});
}

Json variable(const char* name, const std::string& value) {
  return Json::object({{"name", name}, {"value", value}});
}

// The fastest plans of CUDA's libraries are timed once for the trials of a Study that share a
// volume, and stored beside their checkpoints. Without a volume each pod would time for minutes,
// and two trials might run different plans: they run the plans that the libraries rank first.
Json plans_variable(const api::Study& study) {
  if (volume_claim_of(study).empty()) return variable("FETTLE_CUDA_PLANS", "first");
  return variable("FETTLE_KERNEL_CACHE",
                  std::string(kCheckpoints) + "/" + study.metadata.uid + "/plans");
}

Json trainer_container(const api::Study& study, const std::string& image) {
  const std::int64_t threads =
      std::max<std::int64_t>(study.spec.trial.trainer->training.threads, 1);
  Json token = mount("fettle-token", kTokenDirectory);
  token.set("readOnly", true);
  Json mounts(Json::Array{token, mount("fettle-tmp", "/tmp"),
                          mount("fettle-cache", "/home/fettle/.cache")});
  if (api::whole_gpus(study.spec.trial) > 1) mounts.push_back(mount("fettle-shm", "/dev/shm"));
  Json env(Json::Array{variable("FETTLE_REPORT", "kubernetes"),
                       variable("OMP_NUM_THREADS", std::to_string(threads))});
  if (study.spec.trial.gpu) env.push_back(plans_variable(study));
  return Json::object(
      {{"name", api::kTrialContainer},
       {"image", image},
       {"env", std::move(env)},
       {"resources", Json::object({{"requests", Json::object({{"cpu", std::to_string(threads)},
                                                              {"memory", kMemoryRequest}})}})},
       {"securityContext", kube::manifest(kContainerSecurity)},
       {"volumeMounts", std::move(mounts)}});
}

// Kubernetes requests as much as the limit of a resource that has no request. The patch keeps that
// rule: if it has a limit alone, it removes the trainer's usual request.
Json resources_patch(const Json& wanted) {
  Json resources = wanted;
  const Json* const limits = wanted.find("limits");
  if (limits == nullptr || !limits->is_object()) return resources;
  const Json* const there = wanted.find("requests");
  Json requests = there != nullptr && there->is_object() ? *there : Json::object();
  for (const auto& [name, amount] : limits->as_object()) {
    if (requests.find(name) == nullptr) requests.set(name, Json());  // null removes (pod_patch.h)
  }
  return resources.set("requests", std::move(requests));
}

// Moves the member `from` of `spec` into `target`, as `to`.
void move_member(Json& spec, std::string_view from, Json& target, std::string_view to) {
  const Json* const found = spec.find(from);
  if (found == nullptr) return;
  target.set(to, *found);
  spec.erase(from);
}

// spec.trial.pod as a partial pod template. It reads like the spec of a pod; the fields that are
// moved here belong to the pod's metadata or to its container.
Json patch_of(const api::TrainerPod& wanted) {
  Json spec = api::write_struct(wanted);
  Json metadata = Json::object();
  for (const char* const name : {"labels", "annotations"}) move_member(spec, name, metadata, name);
  Json container = Json::object({{"name", api::kTrialContainer}});
  for (const char* const name :
       {"imagePullPolicy", "resources", "volumeMounts", "env", "envFrom"}) {
    move_member(spec, name, container, name);
  }
  move_member(spec, "containerSecurityContext", container, "securityContext");
  if (const Json* const resources = container.find("resources")) {
    container.set("resources", resources_patch(*resources));
  }
  spec.set("containers", Json::Array{std::move(container)});
  return Json::object({{"metadata", std::move(metadata)}, {"spec", std::move(spec)}});
}

}  // namespace

Result<Json> trainer_pod(const api::Study& study, const JobOptions& options) {
  if (options.trainer_image.empty()) {
    return invalid(
        "spec.trial.trainer: this operator was started without --trainer-image; set it, or give "
        "spec.trial.template with an image of your own");
  }
  Json volumes(Json::Array{kube::manifest(kTokenVolume), scratch_volume("fettle-tmp"),
                           scratch_volume("fettle-cache")});
  if (api::whole_gpus(study.spec.trial) > 1) volumes.push_back(kube::manifest(kSharedMemory));
  Json spec =
      Json::object({{"serviceAccountName", kTrainerAccount},
                    {"automountServiceAccountToken", false},
                    {"enableServiceLinks", false},
                    {"securityContext", kube::manifest(kPodSecurity)},
                    {"containers", Json::Array{trainer_container(study, options.trainer_image)}},
                    {"volumes", std::move(volumes)}});
  Json pod = Json::object({{"metadata", Json::object()}, {"spec", std::move(spec)}});
  if (options.trainer_pod.is_object()) patch_pod(pod, options.trainer_pod);
  if (study.spec.trial.pod) patch_pod(pod, patch_of(*study.spec.trial.pod));
  return pod;
}

}  // namespace fettle::kubernetes
