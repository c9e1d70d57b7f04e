#include "runtime/kubernetes/run/prerequisites.h"

#include <string_view>

#include "kube/objects/json_path.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/job/pod_group.h"
#include "runtime/kubernetes/pod/pod_builder.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/pod/volume_claim.h"

namespace fettle::kubernetes {
namespace {

// An object that was made or found is assumed to exist for this long.
constexpr std::int64_t kTrustMs = 60'000;
// Entries of owners that were not reconciled for this long are dropped.
constexpr std::int64_t kForgetMs = 3'600'000;

constexpr std::string_view kPodGroups = "podgroups";

// The key by which ensure() knows the one object of that kind that `owner` has.
std::string key_of_owned(const api::Metadata& owner, std::string_view plural) {
  return owner.uid + "/" + std::string(plural);
}

// Services are known by name: a Job names the Service that its workers look for.
std::string key_of_service(const std::string& ns, const std::string& name) {
  return "services/" + ns + "/" + name;
}

}  // namespace

Status Prerequisites::ensure_for_study(const api::Study& study,
                                       const std::optional<GpuPlacement>& gpus) {
  FETTLE_TRY(ensure_volume_claim(study));
  if (gpus) FETTLE_TRY(ensure_resource_claim(study, *gpus));
  return ensure_service(study);
}

// The claim's name contains the Study's uid, so an existing one belongs to this Study.
Status Prerequisites::ensure_volume_claim(const api::Study& study) {
  if (!makes_volume_claim(study)) return success();
  bool made_again = false;
  FETTLE_TRY(ensure(
      kube::kClaims, study.metadata.ns, key_of_owned(study.metadata, kube::kClaims.plural),
      [&] { return build_volume_claim(study); }, &made_again));
  if (!made_again) return success();
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/true, "ClaimMadeAgain",
                      "its claim " + volume_claim_of(study) +
                          " was gone and is made again; checkpoints that were on it are lost",
                      clock_.now_ms());
  return success();
}

// The name holds a part of the Study's uid and a hash of the claimed devices, so an existing claim
// of this name is the same claim.
Status Prerequisites::ensure_resource_claim(const api::Study& study, const GpuPlacement& gpus) {
  if (gpus.claim.is_null()) return success();
  return ensure(gpu_claim_resource(gpus), study.metadata.ns,
                study.metadata.uid + "/" + gpu_claim_name(study, gpus),
                [&] { return build_gpu_claim(study, gpus); });
}

Status Prerequisites::ensure_service(const api::Study& study) {
  if (!is_distributed(study)) return success();
  return ensure(kube::kServices, study.metadata.ns,
                key_of_service(study.metadata.ns, service_of(study)),
                [&] { return build_service(study); });
}

Status Prerequisites::ensure_service_of(const kube::Job& job, const api::Study& study) {
  const std::string name = service_of(job);
  if (name.empty()) return success();
  const std::string key = key_of_service(job.metadata.ns, name);
  Status made = name == service_of(study) ? ensure_service(study) : success();
  if (has_own_service(job)) {  // an earlier version made the Job
    made = ensure(kube::kServices, job.metadata.ns, key, [&] { return build_own_service(job); });
  }
  if (made.ok()) return made;
  const std::lock_guard lock(mutex_);
  ensured_until_.erase(key);  // so no gang is opened without it
  return made;
}

Status Prerequisites::ensure_pod_group(const kube::Job& job) {
  Status made = success();
  for (const kube::Resource& resource : pod_group_resources(pod_group_of(job))) {
    made = ensure(resource, job.metadata.ns, key_of_owned(job.metadata, kPodGroups),
                  [&] { return build_pod_group(job, resource); });
    // kNotFound: the cluster does not serve this version; an older one follows.
    if (made.ok() || made.error().code != ErrorCode::kNotFound) break;
  }
  return made;
}

bool Prerequisites::are_known(const kube::Job& job) const {
  const std::string service = service_of(job);
  const std::lock_guard lock(mutex_);
  const bool has_service =
      service.empty() || ensured_until_.contains(key_of_service(job.metadata.ns, service));
  return has_service && (pod_group_of(job).empty() ||
                         ensured_until_.contains(key_of_owned(job.metadata, kPodGroups)));
}

void Prerequisites::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  // All keys that begin with "uid/"; '0' follows '/'.
  ensured_until_.erase(ensured_until_.lower_bound(uid + "/"),
                       ensured_until_.lower_bound(uid + "0"));
}

// Creates an object, known here as `key`, unless it was ensured recently. `made_again`: this
// process has ensured it before and had to create it again.
Status Prerequisites::ensure(const kube::Resource& resource, const std::string& ns,
                             const std::string& key, const std::function<Json()>& build,
                             bool* made_again) {
  const std::int64_t now_ms = clock_.now_ms();
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    const auto served = ensured_until_.find(key);
    known = served != ensured_until_.end();
    if (known && now_ms < served->second) return success();
  }
  const Json object = build();
  const auto written = client_.create(resource, ns, object);
  const bool refused = !written.ok() && written.error().code != ErrorCode::kAlreadyExists;
  if (refused && !exists(resource, ns, object)) return written.error();
  if (made_again != nullptr) *made_again = known && written.ok();
  const std::lock_guard lock(mutex_);
  std::erase_if(ensured_until_, [&](const auto& one) { return one.second + kForgetMs < now_ms; });
  ensured_until_[key] = now_ms + kTrustMs;
  return success();
}

// Asked after a refusal: a full quota refuses a creation before the server checks whether the
// object exists.
bool Prerequisites::exists(const kube::Resource& resource, const std::string& ns,
                           const Json& object) {
  return client_.get(resource, {ns, kube::text_at(object, {"metadata", "name"})}).ok();
}

}  // namespace fettle::kubernetes
