// The part of JobRuns that makes the objects that Jobs need beside them: Services, PodGroups and
// claims of volumes.
//
// None of them is watched. Each is created, or created again, before a Job and while its run waits;
// a run that trains needs nothing new. An object that cannot be made keeps a run waiting, with the
// reason, but its state remains visible.
#include <algorithm>
#include <utility>

#include "api/quantity.h"
#include "kube/json_path.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/pod_group.h"
#include "runtime/kubernetes/pod/claim.h"
#include "runtime/kubernetes/pod/pod_builder.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/run/job_runs.h"

namespace fettle::kubernetes {
namespace {

// An object that was made or found is assumed to exist for this long.
constexpr std::int64_t kTrustMs = 60'000;
// Entries of owners that were not reconciled for this long are dropped.
constexpr std::int64_t kForgetMs = 3'600'000;

// The key by which ensure() knows the one object of that kind that `owner` has.
std::string key_of_owned(const api::Metadata& owner, std::string_view plural) {
  return owner.uid + "/" + std::string(plural);
}

// Services are known by name: a Job names the Service that its workers look for.
std::string key_of_service(const std::string& ns, const std::string& name) {
  return "services/" + ns + "/" + name;
}

// A run that could not start is tried again after this; others have its GPUs meanwhile.
constexpr std::int64_t kStartAgainMs = 600'000;

constexpr std::string_view kPodGroups = "podgroups";

}  // namespace

// Makes the objects that must exist before the Jobs of a Study.
Status JobRuns::prepare(const api::Study& study, const std::optional<GpuPlacement>& gpus) {
  FETTLE_TRY(ensure_claim(study));
  if (gpus) FETTLE_TRY(ensure_gpu_claim(study, *gpus));
  return ensure_service(study);
}

Status JobRuns::ensure_service(const api::Study& study) {
  if (!is_distributed(study)) return success();
  const std::string key = key_of_service(study.metadata.ns, service_of(study));
  const auto made =
      ensure(kube::kServices, study.metadata.ns, key, [&] { return build_service(study); });
  return made.ok() ? success() : Status(made.error());
}

// For a Job that an earlier version made.
Status JobRuns::ensure_own_service(const kube::Job& job) {
  const std::string key = key_of_service(job.metadata.ns, service_of(job));
  const auto made =
      ensure(kube::kServices, job.metadata.ns, key, [&] { return build_own_service(job); });
  return made.ok() ? success() : Status(made.error());
}

Status JobRuns::ensure_service_of(const kube::Job& job, const api::Study& study) {
  const std::string name = service_of(job);
  if (name.empty()) return success();
  Status made = name == service_of(study) ? ensure_service(study) : success();
  if (has_own_service(job)) made = ensure_own_service(job);
  if (made.ok()) return made;
  const std::lock_guard lock(mutex_);
  ensured_until_.erase(key_of_service(job.metadata.ns, name));  // so no gang is opened without it
  return made;
}

// Makes the PodGroup in the newest version that the cluster serves.
Status JobRuns::ensure_pod_group(const kube::Job& job) {
  Status made = success();
  for (const kube::Resource& resource : pod_group_resources(pod_group_of(job))) {
    const auto done = ensure(resource, job.metadata.ns, key_of_owned(job.metadata, kPodGroups),
                             [&] { return build_pod_group(job, resource); });
    made = done.ok() ? success() : Status(done.error());
    if (made.ok() || made.error().code != ErrorCode::kNotFound) break;
  }
  return made;
}

// The claim's name contains the Study's uid, so an existing one belongs to this Study.
Status JobRuns::ensure_claim(const api::Study& study) {
  if (!makes_claim(study)) return success();
  FETTLE_ASSIGN(const bool is_again, ensure(kube::kClaims, study.metadata.ns,
                                            key_of_owned(study.metadata, kube::kClaims.plural),
                                            [&] { return build_claim(study); }));
  if (!is_again) return success();
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/true, "ClaimMadeAgain",
                      "its claim " + claim_of(study) +
                          " was gone and is made again; checkpoints that were on it are lost",
                      clock_.now_ms());
  return success();
}

// Creates an object that a Job needs, known here as `key`, unless it was ensured recently. Returns
// true if this process has ensured it before and had to create it again.
Result<bool> JobRuns::ensure(const kube::Resource& resource, const std::string& ns,
                             const std::string& key, const std::function<Json()>& build) {
  const std::int64_t now_ms = clock_.now_ms();
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    const auto served = ensured_until_.find(key);
    known = served != ensured_until_.end();
    if (known && now_ms < served->second) return false;
  }
  const Json object = build();
  const auto written = client_.create(resource, ns, object);
  const bool refused = !written.ok() && written.error().code != ErrorCode::kAlreadyExists;
  if (refused && !exists(resource, ns, object)) return written.error();
  const std::lock_guard lock(mutex_);
  std::erase_if(ensured_until_, [&](const auto& one) { return one.second + kForgetMs < now_ms; });
  ensured_until_[key] = now_ms + kTrustMs;
  return known && written.ok();
}

// Asked after a refusal: a full quota refuses a creation before the server checks whether the
// object exists.
bool JobRuns::exists(const kube::Resource& resource, const std::string& ns, const Json& object) {
  return client_.get(resource, {ns, kube::text_at(object, {"metadata", "name"})}).ok();
}

bool JobRuns::is_prepared(const kube::Job& job) {
  const std::string service = service_of(job);
  const std::lock_guard lock(mutex_);
  const bool has_service =
      service.empty() || ensured_until_.contains(key_of_service(job.metadata.ns, service));
  return has_service && (pod_group_of(job).empty() ||
                         ensured_until_.contains(key_of_owned(job.metadata, kPodGroups)));
}

// Deletes the Job of a run that holds nodes for nothing; the run starts again later. As in
// return_gang, the annotation comes first.
Status JobRuns::give_back(const kube::Job& job, const std::string& why) {
  if (gang_state(job) != GangState::kReturned) {
    FETTLE_TRY(set_gang_state(job, GangState::kReturned, Json::object()));
  }
  const std::int64_t now_ms = clock_.now_ms();
  {
    const std::lock_guard lock(mutex_);
    refusals_.hold_back(run_of(job), job.completions,
                        why + "; it gives its node back, and is tried again after " +
                            api::format_duration(static_cast<double>(kStartAgainMs) / 1000),
                        now_ms, now_ms + kStartAgainMs);
  }
  return delete_with_pods(job);
}

// Whether the error has lasted long enough: a server that is away for a moment is not worth a
// condition.
bool JobRuns::is_worth_telling(const kube::Job& job, const std::optional<Error>& error) {
  const std::lock_guard lock(mutex_);
  if (!error) {
    helpless_since_.erase(job.metadata.uid);
    return false;
  }
  const std::int64_t now_ms = clock_.now_ms();
  const std::int64_t since_ms = helpless_since_.try_emplace(job.metadata.uid, now_ms).first->second;
  return error->code != ErrorCode::kUnavailable || now_ms - since_ms >= kPodsPatienceMs;
}

// Makes the objects that the run still waits for, and advances its gang. Returns the first error in
// words, or "".
std::string JobRuns::help_to_start(const JobView& view, const api::Trial& trial,
                                   const api::Study* study, const core::Run& run) {
  const kube::Job& job = view.job;
  std::optional<Error> first;
  const auto note = [&first](const Status& done) {
    if (!done.ok() && !first) first = done.error();
  };
  const bool waits = run.state == core::RunState::kPending;
  const bool over = run.state == core::RunState::kExited || view.stop_asked;
  // Also for the workers that an elastic run still misses.
  const bool lacks = !over && run.running_workers.value_or(run.workers) < run.workers;
  if (lacks && study != nullptr) note(ensure_service_of(job, *study));
  if (!over && view.pods.empty() && job.metadata.deleted_ms == 0) note(ensure_pod_group(job));
  note(reconcile_gangs(job));
  // This Job is in no line: the operator may have stopped between the two writes of give_back().
  const bool is_left = gang_state(job) == GangState::kReturned && domain_of(job).empty();
  if (is_left && job.metadata.deleted_ms == 0) note(delete_with_pods(job));
  if (waits && has_fallen_apart(view)) {
    note(unless_gone(return_gang(job, options_.gang_timeout_ms)));
  }
  const std::string stuck = waits ? why_not_started(view) : "";
  if (!stuck.empty()) note(unless_gone(give_back(job, stuck)));
  // A pending run may wait for a claim that a user deleted.
  if (waits && study != nullptr) {
    note(ensure_claim(*study));
    note(restore_gpu_claim(sized_for(*study, trial)));
  }
  return is_worth_telling(job, first) ? first->message : "";
}

}  // namespace fettle::kubernetes
