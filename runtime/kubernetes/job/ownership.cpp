#include "runtime/kubernetes/job/ownership.h"

#include <algorithm>

#include "kube/objects/labels.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {

std::string trial_group(const std::string& ns, const std::string& trial) {
  return ns + "/" + trial;
}

std::string group_of(const kube::Job& job) {
  return trial_group(job.metadata.ns, kube::text_in(job.metadata.labels, kTrialLabel));
}

std::string pod_group(const kube::Job& job) { return job.metadata.ns + "/" + job.metadata.uid; }

// Includes the namespace of the pod: the pod's author wrote the owner reference, and the API server
// only checks references within a namespace.
std::string group_of(const kube::Pod& pod) {
  return pod.owner ? pod.metadata.ns + "/" + pod.owner->uid : "";
}

bool is_owned_by(const kube::Job& job, const api::Trial& trial) {
  return job.owner && job.owner->uid == trial.metadata.uid;
}

kube::ObjectKey key_of(const api::Metadata& metadata) { return {metadata.ns, metadata.name}; }

RunName name_of(const api::Trial& trial, std::int64_t run) {
  return {trial.metadata.ns, trial.metadata.name, trial.metadata.uid, run};
}

const api::RunRecord* find_record(const api::Trial& trial, std::int64_t run) {
  const auto& records = trial.status.runs;
  const auto found = std::ranges::find(records, run, &api::RunRecord::run);
  return found == records.end() ? nullptr : &*found;
}

bool has_ended(const kube::Job& job) {
  return kube::find_condition(job.conditions, "Complete") != nullptr ||
         kube::find_condition(job.conditions, "Failed") != nullptr;
}

Status unless_gone(Status done) {
  if (done.ok()) return done;
  const ErrorCode code = done.error().code;
  const bool gone = code == ErrorCode::kNotFound || code == ErrorCode::kConflict;
  return gone ? success() : done;
}

RunName run_of(const kube::Job& job) {
  return {job.metadata.ns, kube::text_in(job.metadata.labels, kTrialLabel),
          job.owner ? job.owner->uid : "", kube::number_in(job.metadata.labels, kRunLabel)};
}

}  // namespace fettle::kubernetes
