#include "runtime/kubernetes/trainer_pod.h"

#include <algorithm>

#include "api/field_writer.h"
#include "api/resolve.h"
#include "api/study_fields.h"
#include "runtime/kubernetes/pod_patch.h"

namespace fettle::kubernetes {
namespace {

// The user of the trainer's image.
constexpr std::int64_t kUser = 65532;
constexpr const char* kTokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";
// The kubelet rotates it before it expires; a stolen one expires soon.
constexpr std::int64_t kTokenSeconds = 3600;
constexpr const char* kMemoryRequest = "512Mi";

Json pod_security() {
  return Json::object({{"runAsNonRoot", true},
                       {"runAsUser", kUser},
                       {"runAsGroup", kUser},
                       {"fsGroup", kUser},
                       {"fsGroupChangePolicy", "OnRootMismatch"},
                       {"seccompProfile", Json::object({{"type", "RuntimeDefault"}})}});
}

Json container_security() {
  return Json::object({{"allowPrivilegeEscalation", false},
                       {"readOnlyRootFilesystem", true},
                       {"capabilities", Json::object({{"drop", Json(Json::Array{"ALL"})}})}});
}

// The default token mount of a pod, but short-lived and for this container only.
Json token_volume() {
  const Json token =
      Json::object({{"serviceAccountToken",
                     Json::object({{"path", "token"}, {"expirationSeconds", kTokenSeconds}})}});
  const Json authority = Json::object(
      {{"configMap", Json::object({{"name", "kube-root-ca.crt"},
                                   {"items", Json(Json::Array{Json::object(
                                                 {{"key", "ca.crt"}, {"path", "ca.crt"}})})}})}});
  const Json where = Json::object(
      {{"downwardAPI",
        Json::object(
            {{"items",
              Json(Json::Array{Json::object(
                  {{"path", "namespace"},
                   {"fieldRef", Json::object({{"fieldPath", "metadata.namespace"}})}})})}})}});
  return Json::object(
      {{"name", "fettle-token"},
       {"projected", Json::object({{"sources", Json(Json::Array{token, authority, where})}})}});
}

Json scratch_volume(const char* name) {
  return Json::object({{"name", name}, {"emptyDir", Json::object()}});
}

// For NCCL between GPUs without peer access; a container's default /dev/shm has 64 MiB.
Json shared_memory_volume() {
  return Json::object({{"name", "fettle-shm"}, {"emptyDir", Json::object({{"medium", "Memory"}})}});
}

Json mount(const char* name, const char* path) {
  return Json::object({{"name", name}, {"mountPath", path}});
}

Json trainer_container(const api::Study& study, const std::string& image) {
  const std::int64_t threads =
      std::max<std::int64_t>(study.spec.trial.trainer->training.threads, 1);
  Json token = mount("fettle-token", kTokenDirectory);
  token.set("readOnly", true);
  Json mounts(Json::Array{token, mount("fettle-tmp", "/tmp"),
                          mount("fettle-cache", "/home/fettle/.cache")});
  if (api::whole_gpus(study.spec.trial) > 1) mounts.push_back(mount("fettle-shm", "/dev/shm"));
  return Json::object(
      {{"name", kTrainerContainer},
       {"image", image},
       {"env", Json(Json::Array{Json::object({{"name", "FETTLE_REPORT"}, {"value", "kubernetes"}}),
                                Json::object({{"name", "OMP_NUM_THREADS"},
                                              {"value", std::to_string(threads)}})})},
       {"resources", Json::object({{"requests", Json::object({{"cpu", std::to_string(threads)},
                                                              {"memory", kMemoryRequest}})}})},
       {"securityContext", container_security()},
       {"volumeMounts", std::move(mounts)}});
}

}  // namespace

Result<Json> trainer_pod(const api::Study& study, const JobOptions& options) {
  if (options.trainer_image.empty()) {
    return invalid(
        "spec.trial.trainer: this operator was started without --trainer-image; set it, or give "
        "spec.trial.template with an image of your own");
  }
  Json volumes(
      Json::Array{token_volume(), scratch_volume("fettle-tmp"), scratch_volume("fettle-cache")});
  if (api::whole_gpus(study.spec.trial) > 1) volumes.push_back(shared_memory_volume());
  Json spec = Json::object(
      {{"serviceAccountName", kTrainerAccount},
       {"automountServiceAccountToken", false},
       {"enableServiceLinks", false},
       {"securityContext", pod_security()},
       {"containers", Json(Json::Array{trainer_container(study, options.trainer_image)})},
       {"volumes", std::move(volumes)}});
  Json pod = Json::object({{"metadata", Json::object()}, {"spec", std::move(spec)}});
  if (options.trainer_pod.is_object()) patch_pod(pod, options.trainer_pod);
  if (study.spec.trial.pod) {
    patch_pod(pod, Json::object({{"spec", api::write_struct(*study.spec.trial.pod)}}));
  }
  return pod;
}

}  // namespace fettle::kubernetes
