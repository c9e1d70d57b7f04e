#include "runtime/kubernetes/run/job_client.h"

#include <utility>

#include "api/fields/timestamp.h"
#include "core/names.h"
#include "kube/objects/json_path.h"
#include "runtime/kubernetes/job/ownership.h"

namespace fettle::kubernetes {

JobPtr JobClient::find(const api::Trial& trial, std::int64_t run) const {
  const JobPtr job = jobs_.get({trial.metadata.ns, core::run_name(trial.metadata.name, run)});
  return job != nullptr && is_owned_by(*job, trial) ? job : nullptr;
}

Status JobClient::create(const Json& job, const api::Trial& trial, std::int64_t run) {
  const Result<kube::Written> written = client_.create(kube::kJobs, trial.metadata.ns, job);
  if (written.ok()) return cache(written->object);
  if (written.error().code != ErrorCode::kAlreadyExists) return written.error();
  return adopt(trial, core::run_name(trial.metadata.name, run));
}

// Adopts a Job of that name that the trial owns: an earlier attempt at this start created it.
Status JobClient::adopt(const api::Trial& trial, const std::string& name) {
  FETTLE_ASSIGN(const Json object, client_.get(kube::kJobs, {trial.metadata.ns, name}));
  FETTLE_ASSIGN(const kube::Job job, kube::read_job(object));
  if (!is_owned_by(job, trial)) {
    return Error{ErrorCode::kAlreadyExists, "a Job " + name + " exists in namespace " +
                                                trial.metadata.ns +
                                                " and is not Fettle's; delete it or rename it"};
  }
  if (job.metadata.deleted_ms != 0) {
    return Error{ErrorCode::kUnavailable, "the Job " + name + " is still being deleted"};
  }
  return cache(object);
}

Status JobClient::cache(const Json& object) {
  FETTLE_ASSIGN(kube::Job job, kube::read_job(object));
  jobs_.put(std::move(job));
  return success();
}

// `change` names the uid.
Status JobClient::patch(const kube::Job& job, const Json& change) {
  FETTLE_ASSIGN(const kube::Written written,
                client_.patch(kube::kJobs, key_of(job.metadata), "", change));
  return cache(written.object);
}

Status JobClient::patch_spec(const kube::Job& job, Json spec) {
  return unless_gone(
      patch(job, Json::object({{"metadata", Json::object({{"uid", job.metadata.uid}})},
                               {"spec", std::move(spec)}})));
}

Status JobClient::resize(const kube::Job& job, std::int64_t workers) {
  return patch_spec(job, Json::object({{"completions", workers}, {"parallelism", workers}}));
}

Status JobClient::patch_metadata(const kube::Job& job, Json metadata) {
  metadata.set("uid", job.metadata.uid);
  return patch(job, Json::object({{"metadata", std::move(metadata)}}));
}

Status JobClient::set_gang_state(const kube::Job& job, GangState state, Json spec) {
  Json annotations = Json::object({{kGangAnnotation, to_string(state)}});
  if (state == GangState::kOpen) {
    annotations.set(kGangOpenedAnnotation, api::format_timestamp(clock_.now_ms()));
  }
  const Json metadata = Json::object({{"uid", job.metadata.uid},
                                      {"resourceVersion", job.metadata.resource_version},
                                      {"annotations", std::move(annotations)}});
  return patch(job, Json::object({{"metadata", metadata}, {"spec", std::move(spec)}}));
}

Status JobClient::remove(const kube::Job& job, bool foreground) {
  {
    // Before the call, because the watch event, which clears this, may precede the answer.
    const std::lock_guard lock(mutex_);
    removed_.insert(job.metadata.uid);
  }
  Status done = erase(job, foreground);
  if (!done.ok()) forget(job.metadata.uid);
  return done;
}

Status JobClient::remove_with_pods(const kube::Job& job) { return erase(job, /*foreground=*/true); }

// Believes that a Job is gone only if it cannot be read: a proxy may have answered, and a Job that
// is believed gone is never deleted again.
Status JobClient::erase(const kube::Job& job, bool foreground) {
  kube::RemoveOptions options;
  options.uid = job.metadata.uid;
  options.foreground = foreground;
  Status removed = client_.remove(kube::kJobs, key_of(job.metadata), options);
  if (removed.ok()) return removed;
  const ErrorCode code = removed.error().code;
  if (code != ErrorCode::kNotFound && code != ErrorCode::kConflict) return removed;
  const Result<Json> there = client_.get(kube::kJobs, key_of(job.metadata));
  if (!there.ok()) return unless_gone(there.error());
  // Another uid: the name now belongs to a later Job, which stays.
  if (kube::text_at(*there, {"metadata", "uid"}) != job.metadata.uid) return success();
  return Error{ErrorCode::kUnavailable, removed.error().message};
}

bool JobClient::is_being_removed(const kube::Job& job) const {
  const std::lock_guard lock(mutex_);
  return removed_.contains(job.metadata.uid);
}

void JobClient::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  removed_.erase(uid);
}

}  // namespace fettle::kubernetes
