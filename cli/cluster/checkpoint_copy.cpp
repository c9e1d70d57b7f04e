#include "cli/cluster/checkpoint_copy.h"

#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "api/study/pod_template.h"
#include "base/program.h"
#include "cli/cluster/pod_waits.h"
#include "cli/common/interrupt.h"
#include "cli/terminal/text.h"
#include "kube/objects/json_write.h"
#include "kube/objects/objects.h"
#include "kube/objects/resource.h"
#include "runtime/kubernetes/pod/pod_builder.h"
#include "runtime/kubernetes/pod/trainer_pod.h"
#include "runtime/kubernetes/pod/volume_claim.h"
#include "runtime/make_trial_file.h"

namespace fettle::cli {
namespace {

using std::chrono::minutes;
using std::chrono::steady_clock;

constexpr const char* kContainer = "checkpoints";
constexpr const char* kVolume = "checkpoints";
// A quota of the namespace may want both.
constexpr const char* kResources = R"({"requests": {"cpu": "100m", "memory": "64Mi"},
                                       "limits": {"cpu": "1", "memory": "256Mi"}})";
constexpr std::int64_t kPodSeconds = 3600;  // it ends by itself if nobody deletes it
constexpr minutes kMostWait{10};
constexpr std::chrono::milliseconds kWaitInterval{500};

// The trial's pod, as the operator would make it.
Result<Json> pod_of_trial(const api::Study& study, const std::string& image) {
  if (!study.spec.trial.trainer) return study.spec.trial.pod_template;
  kubernetes::JobOptions options;
  options.trainer_image = image.empty() ? "fettle-trainer:" FETTLE_VERSION : image;
  return kubernetes::trainer_pod(study, options);
}

// Copies the members `names`, where `from` has them.
Json members_of(const Json& from, std::initializer_list<const char*> names) {
  Json to = Json::object();
  for (const char* const name : names) {
    if (const Json* const found = from.find(name)) to.set(name, *found);
  }
  return to;
}

Json container_of(const Json& trials_own, const std::string& image) {
  Json container = members_of(trials_own, {"image", "imagePullPolicy", "securityContext"});
  container.set("name", kContainer);
  if (!image.empty()) container.set("image", image);
  container.set("resources", kube::manifest(kResources));
  container.set("command", Json::Array{"sleep", std::to_string(kPodSeconds)});
  container.set("volumeMounts", Json::Array{Json::object({{"name", kVolume},
                                                          {"mountPath", kubernetes::kCheckpoints},
                                                          {"readOnly", true}})});
  return container;
}

// Not as a controller, which takes a right to the Trial's finalizers on some clusters.
Json owner(const api::Trial& trial) {
  return Json::object({{"apiVersion", kube::api_version(kube::kTrials)},
                       {"kind", kube::kTrials.kind},
                       {"name", trial.metadata.name},
                       {"uid", trial.metadata.uid}});
}

// A pod on the server, which is deleted with this object.
class LentPod {
 public:
  static Result<std::unique_ptr<LentPod>> create(kube::Client& client, const std::string& ns,
                                                 const Json& manifest) {
    FETTLE_ASSIGN(const kube::Written made, client.create(kube::kPods, ns, manifest));
    for (const std::string& warning : made.warnings) std::cerr << "fettle: " << warning << '\n';
    FETTLE_ASSIGN(const kube::Pod pod, kube::read_pod(made.object));
    return std::make_unique<LentPod>(client, kube::ObjectKey{ns, pod.metadata.name},
                                     pod.metadata.uid);
  }
  LentPod(kube::Client& client, kube::ObjectKey key, std::string uid)
      : client_(client), key_(std::move(key)), uid_(std::move(uid)) {}
  ~LentPod() {
    const Status gone = client_.remove(kube::kPods, key_, {uid_, "", false});
    if (gone.ok() || gone.error().code == ErrorCode::kNotFound) return;
    std::cerr << "fettle: pod " << key_.name << " is left for an hour: " << gone.error().message
              << '\n';
  }
  LentPod(const LentPod&) = delete;
  LentPod& operator=(const LentPod&) = delete;

  const std::string& name() const { return key_.name; }

  // Waits until the container runs, and says on standard error why it waits.
  Status wait_until_it_runs(Interrupt& interrupt) {
    std::string said = "pending";
    for (const auto end = steady_clock::now() + kMostWait;;) {
      FETTLE_ASSIGN(const Json object, client_.get(kube::kPods, key_));
      FETTLE_ASSIGN(const kube::Pod pod, kube::read_pod(object));
      const std::string waits = waiting_reason(pod, kContainer);
      if (waits.empty() && pod.phase == "Running") return success();
      if (waits.empty()) return unavailable("ended: " + pod.phase + ' ' + pod.message);
      if (waits != said) {
        std::cerr << "fettle: pod " << key_.name << ": " << printable(waits) << '\n';
        said = waits;
      }
      if (waits.starts_with("ErrImage") || waits.starts_with("InvalidImage")) {
        return unavailable("has no image; name one that its node can pull with --image");
      }
      if (interrupt.take() > 0) return unavailable("was not waited for");
      if (steady_clock::now() > end) return unavailable("has not started: " + printable(waits));
      std::this_thread::sleep_for(kWaitInterval);
    }
  }

 private:
  Status unavailable(const std::string& what) const {
    return Error{ErrorCode::kUnavailable, "pod " + key_.name + " " + what};
  }

  kube::Client& client_;
  const kube::ObjectKey key_;
  const std::string uid_;
};

Status run_kubectl_cp(const Cluster& cluster, const std::string& pod, const std::string& from,
                      const std::string& to) {
  const std::string command = "exec " + cluster.kubectl + " cp -c " + kContainer + " " +
                              shell_word(pod + ":" + from) + " " + shell_word(to);
  FETTLE_ASSIGN(const ProgramEnd end, run_program({.command = {"sh", "-c", command},
                                                   .keeps_errors = true,
                                                   .limit = std::chrono::hours(1)}));
  constexpr int kNoSuchProgram = 127;
  if (end.code == kNoSuchProgram) return not_found("the copy needs kubectl, which is not in $PATH");
  if (const std::string why = end.failure(); !why.empty()) {
    return io_error("kubectl cp: " + printable(why));
  }
  return success();
}

}  // namespace

Result<Json> checkpoint_pod(const api::Study& study, const api::Trial& trial,
                            const std::string& image) {
  const std::string claim = kubernetes::volume_claim_of(study);
  if (claim.empty()) {
    return invalid("study " + study.metadata.name +
                   " has no checkpoints: without spec.trial.checkpoints they go with their pods");
  }
  FETTLE_ASSIGN(const Json from, pod_of_trial(study, image));
  const Json* const spec_from = from.find("spec");
  const Json* const container = api::trial_container(from);
  if (spec_from == nullptr || container == nullptr) return invalid("the Study has no container");
  Json spec = members_of(*spec_from, {"securityContext", "imagePullSecrets", "nodeSelector",
                                      "affinity", "tolerations"});
  spec.set("restartPolicy", "Never");
  spec.set("activeDeadlineSeconds", kPodSeconds);
  spec.set("terminationGracePeriodSeconds", 0);
  spec.set("automountServiceAccountToken", false);
  spec.set("containers", Json::Array{container_of(*container, image)});
  spec.set("volumes",
           Json::Array{Json::object({{"name", kVolume},
                                     {"persistentVolumeClaim",
                                      Json::object({{"claimName", claim}, {"readOnly", true}})}})});
  Json pod = Json::object({{"apiVersion", "v1"}, {"kind", "Pod"}});
  Json& metadata = kube::map_of(pod, "metadata");
  metadata.set("generateName", trial.metadata.name + "-copy-");
  metadata.set("ownerReferences", Json::Array{owner(trial)});
  pod.set("spec", std::move(spec));
  return pod;
}

Status with_checkpoint_pod(const Cluster& cluster, const api::Study& study, const api::Trial& trial,
                           const std::string& image, const UsePod& use) {
  FETTLE_ASSIGN(const Json manifest, checkpoint_pod(study, trial, image));
  FETTLE_ASSIGN(const auto interrupt, Interrupt::install());
  kube::Client client(*cluster.transport, client_options());
  FETTLE_ASSIGN(const auto pod, LentPod::create(client, cluster.ns, manifest));
  FETTLE_TRY(pod->wait_until_it_runs(*interrupt));
  return use(pod->name());
}

Status copy_from_volume(const Cluster& cluster, const api::Study& study, const api::Trial& trial,
                        const std::string& image, const std::string& to) {
  const std::string from = runtime::checkpoint_directory(kubernetes::kCheckpoints,
                                                         study.metadata.uid, trial.metadata.name);
  FETTLE_TRY(with_checkpoint_pod(cluster, study, trial, image, [&](const std::string& pod) {
    return run_kubectl_cp(cluster, pod, from, to);
  }));
  std::error_code code;
  if (std::filesystem::is_directory(to, code)) return success();
  return not_found("trial " + trial.metadata.name + " has no checkpoint on the volume");
}

}  // namespace fettle::cli
