// The part of JobRuns that finds pods otherwise than by their Job: pods of a trial, and pods of
// other Studies that wait for the nodes of an elastic Study.
#include "core/elastic.h"
#include "core/names.h"
#include "kube/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/run/job_runs.h"

namespace fettle::kubernetes {

void JobRuns::index_pod(const api::Metadata& metadata, const std::string& trial, bool is_refused,
                        bool is_gone) {
  const kube::ObjectKey key = key_of(metadata);
  const std::string group = trial_group(metadata.ns, trial);
  const std::lock_guard lock(mutex_);
  is_refused ? (void)refused_pods_.insert(key) : (void)refused_pods_.erase(key);
  std::set<kube::ObjectKey>& pods = trial_pods_[group];
  is_gone ? (void)pods.erase(key) : (void)pods.insert(key);
  if (pods.empty()) trial_pods_.erase(group);
}

// The pods of all runs, including runs whose Job is gone.
std::vector<PodPtr> JobRuns::pods_of_trial(const api::Trial& trial) const {
  std::set<kube::ObjectKey> keys;
  {
    const std::lock_guard lock(mutex_);
    const auto found = trial_pods_.find(trial_group(trial.metadata.ns, trial.metadata.name));
    if (found != trial_pods_.end()) keys = found->second;
  }
  std::vector<PodPtr> pods;
  for (const kube::ObjectKey& key : keys) {
    if (PodPtr pod = pods_.get(key)) pods.push_back(std::move(pod));
  }
  return pods;
}

// Adds, for pods of other Studies without a node, the creation time and the Study of the oldest.
// Only competing pods for which the scheduler finds no node count. A pod that has waited for
// kTryAgainMs, while Studies made room, waits for something else: a label that no node has, or a
// larger node.
void JobRuns::add_waiting_elsewhere(const api::Study& study, core::Capacity& capacity) {
  std::set<kube::ObjectKey> refused;
  {
    const std::lock_guard lock(mutex_);
    refused = refused_pods_;
  }
  for (const kube::ObjectKey& key : refused) {
    const PodPtr pod = pods_.get(key);
    if (pod == nullptr) continue;
    const api::Metadata& metadata = pod->metadata;
    if (pod->unschedulable.empty() || !pod->node.empty() || metadata.deleted_ms != 0) continue;
    if (clock_.now_ms() >= metadata.created_ms + core::kTryAgainMs) continue;
    const bool is_older =
        !capacity.waiting_elsewhere_ms || metadata.created_ms < *capacity.waiting_elsewhere_ms;
    const std::string name = kube::text_in(metadata.labels, core::kStudyLabel);
    const bool is_own = metadata.ns == study.metadata.ns && name == study.metadata.name;
    if (!is_older || name.empty() || is_own || !competes(study, *pod)) continue;
    capacity.waiting_elsewhere_ms = metadata.created_ms;
    capacity.who_waits = metadata.ns + "/" + name;
  }
}

// Whether a pod of another Study may get the nodes of this Study's pods: both use GPUs or neither
// does, and if both have gangs, these share a domain (gang.h).
bool JobRuns::competes(const api::Study& study, const kube::Pod& pod) {
  const std::string name = kube::text_in(pod.metadata.labels, core::kStudyLabel);
  const Result<api::Study> other = store_.get_study({pod.metadata.ns, name});
  if (!other.ok() || other->spec.trial.gpu.has_value() != study.spec.trial.gpu.has_value()) {
    return false;
  }
  const JobPtr job = pod.owner ? jobs_.get({pod.metadata.ns, pod.owner->name})
                               : std::shared_ptr<const kube::Job>();
  const std::string domain = job == nullptr ? "" : domain_of(*job);
  const std::string own = domain_of_study(study);
  return domain.empty() || own.empty() || domain == own;
}

// The domain of the Study's gangs; "" if it has none now.
std::string JobRuns::domain_of_study(const api::Study& study) const {
  for (const JobPtr& job : jobs_.all()) {
    const api::Metadata& metadata = job->metadata;
    const bool is_own = metadata.ns == study.metadata.ns &&
                        kube::text_in(metadata.labels, core::kStudyLabel) == study.metadata.name;
    if (is_own && !domain_of(*job).empty()) return domain_of(*job);
  }
  return "";
}

}  // namespace fettle::kubernetes
