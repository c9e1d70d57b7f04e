// Checks of the built-in trainer's pod: Kubernetes' rules across the fields of a toleration, and
// Fettle's reserved names. The API server judges the rest, when the Study appears.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/study/check.h"

namespace fettle::api {
namespace {

constexpr std::size_t kLargestPod = 100'000;  // bytes as JSON
// Reserved prefixes of labels and annotations, of volumes, and of variables.
constexpr std::string_view kOurDomain = "fettle.dev/";
constexpr std::string_view kOurVolumes = "fettle-";
constexpr std::string_view kOurVariables = "FETTLE_";
// Variables set by the rendezvous of several workers.
constexpr std::array<std::string_view, 10> kRendezvous = {
    "MASTER_ADDR",     "MASTER_PORT",     "RANK",          "WORLD_SIZE", "LOCAL_RANK",
    "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK", "PET_NNODES", "PET_NPROC_PER_NODE"};
constexpr std::array<std::string_view, 3> kOurPlaces = {
    "/fettle", "/var/run/secrets/kubernetes.io/serviceaccount",
    "/run/secrets/kubernetes.io/serviceaccount"};
// Domains of the names of GPU resources.
constexpr std::array<std::string_view, 4> kGpuDomains = {"nvidia.com/", "amd.com/",
                                                         "gpu.intel.com/", "habana.ai/"};

void check_toleration(const Toleration& toleration, const FieldPath& path, FieldErrors& errors) {
  const bool exists = toleration.relation == TolerationOperator::kExists;
  if (toleration.key.empty() && !exists) {
    errors.add(path.member("key"),
               "is missing; expected the key of a taint, or operator: Exists, which without a key "
               "stands for every taint");
  }
  if (exists && !toleration.value.empty()) {
    errors.add(path.member("value"), "found " + describe(Json(toleration.value)) +
                                         " with operator Exists, which takes any value: remove "
                                         "one of the two");
  }
  if (toleration.seconds && toleration.effect != TaintEffect::kNoExecute) {
    errors.add(path.member("tolerationSeconds"),
               "only makes sense with effect: NoExecute; remove it");
  }
}

void check_keys(const std::map<std::string, std::string>& entries, const FieldPath& path,
                FieldErrors& errors) {
  for (const auto& [key, value] : entries) {
    if (!key.starts_with(kOurDomain)) continue;
    errors.add(path.member(key), "found the key " + describe(Json(key)) +
                                     ", which Fettle sets itself; use another domain");
  }
}

// Returns the text `name` of an entry; "" and an error if it has none.
std::string text_of(const Json& entry, std::string_view name, const FieldPath& path,
                    FieldErrors& errors) {
  const Json* const found = entry.find(name);
  if (found != nullptr && found->is_string() && !found->as_string().empty()) {
    return found->as_string();
  }
  errors.add(path.member(name), found == nullptr
                                    ? "is missing; expected a text"
                                    : "found " + describe(*found) + ", expected a text");
  return "";
}

void check_volumes(const std::vector<Json>& volumes, const FieldPath& path, FieldErrors& errors) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const FieldPath item = path.item(i);
    const std::string name = text_of(volumes[i], "name", item, errors);
    if (name.starts_with(kOurVolumes)) {
      errors.add(item.member("name"),
                 "found " + describe(Json(name)) +
                     "; names that begin with fettle- are reserved for Fettle; rename it");
    } else if (!name.empty() && std::ranges::find(names, name) != names.end()) {
      errors.add(item.member("name"),
                 "found " + describe(Json(name)) + " again; expected distinct names");
    }
    names.push_back(name);
  }
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

void check_mounts(const std::vector<Json>& mounts, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const FieldPath item = path.item(i);
    (void)text_of(mounts[i], "name", item, errors);  // complains if it is missing
    const std::string place = text_of(mounts[i], "mountPath", item, errors);
    const bool ours = std::ranges::any_of(
        kOurPlaces, [&](const auto& one) { return is_at_or_below(place, one); });
    if (!ours) continue;
    errors.add(
        item.member("mountPath"),
        "found " + describe(Json(place)) +
            ", where Fettle mounts the trial, its checkpoints and its token; choose another path");
  }
}

void check_variables(const std::vector<Json>& env, const FieldPath& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < env.size(); ++i) {
    const FieldPath item = path.item(i);
    check_env_entry(env[i], item, errors);
    const Json* const name = env[i].find("name");
    if (name == nullptr || !name->is_string()) continue;
    const std::string& text = name->as_string();
    const bool ours = text.starts_with(kOurVariables) ||
                      std::ranges::find(kRendezvous, text) != kRendezvous.end();
    if (!ours) continue;
    errors.add(item.member("name"),
               "found " + describe(*name) + ", which Fettle sets itself; give it another name");
  }
}

// GPU-hours are counted from trial.gpu alone.
void check_no_gpus(const Json& resources, const FieldPath& path, FieldErrors& errors) {
  for (const std::string_view kind : {"requests", "limits"}) {
    const Json* const amounts = resources.find(kind);
    if (amounts == nullptr || !amounts->is_object()) continue;
    for (const auto& [name, amount] : amounts->as_object()) {
      const bool gpu = std::ranges::any_of(
          kGpuDomains, [&](std::string_view one) { return name.starts_with(one); });
      if (!gpu) continue;
      errors.add(path.member(kind).member(name),
                 "is a GPU, which is asked for and charged by spec.trial.gpu; remove it");
    }
  }
}

void check_own_parts(const TrainerPod& pod, const FieldPath& path, FieldErrors& errors) {
  check_keys(pod.labels, path.member("labels"), errors);
  check_keys(pod.annotations, path.member("annotations"), errors);
  const FieldPath volumes = path.member("volumes");
  const FieldPath mounts = path.member("volumeMounts");
  const FieldPath env = path.member("env");
  const FieldPath resources = path.member("resources");
  if (!errors.any_under(volumes)) check_volumes(pod.volumes, volumes, errors);
  if (!errors.any_under(mounts)) check_mounts(pod.volume_mounts, mounts, errors);
  if (!errors.any_under(env)) check_variables(pod.env, env, errors);
  if (pod.resources.is_object()) {  // null: left out
    check_amounts(pod.resources, resources, errors);
    check_no_gpus(pod.resources, resources, errors);
  }
}

std::size_t size_of(const TrainerPod& pod) {
  std::size_t size = pod.affinity.dump().size() + pod.security_context.dump().size() +
                     pod.container_security_context.dump().size() + pod.resources.dump().size();
  for (const auto* list :
       {&pod.topology_spread, &pod.volumes, &pod.volume_mounts, &pod.env, &pod.env_from}) {
    for (const Json& entry : *list) size += entry.dump().size();
  }
  return size;
}

}  // namespace

void check_pod(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors) {
  if (!trial.pod) return;
  if (trial.pod_template.is_object()) {
    errors.add(path, "is for the built-in trainer; a template describes its own pods: remove pod");
  }
  if (const std::size_t size = size_of(*trial.pod); size > kLargestPod) {
    errors.add(path, "found " + std::to_string(size) + " bytes, expected at most " +
                         std::to_string(kLargestPod));
    return;
  }
  const FieldPath list = path.member("tolerations");
  for (std::size_t i = 0; i < trial.pod->tolerations.size(); ++i) {
    const FieldPath item = list.item(i);
    if (!errors.any_under(item)) check_toleration(trial.pod->tolerations[i], item, errors);
  }
  check_own_parts(*trial.pod, path, errors);
}

}  // namespace fettle::api
