#include "runtime/kubernetes/run/pod_index.h"

#include <utility>

#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {

void PodIndex::update(const PodPtr& before, const PodPtr& after) {
  const api::Metadata& metadata = (after != nullptr ? after : before)->metadata;
  const kube::ObjectKey key = key_of(metadata);
  const std::string group = trial_group(metadata.ns, kube::text_in(metadata.labels, kTrialLabel));
  const bool is_unschedulable = after != nullptr && !after->unschedulable.empty();
  const std::lock_guard lock(mutex_);
  is_unschedulable ? (void)unschedulable_.insert(key) : (void)unschedulable_.erase(key);
  std::set<kube::ObjectKey>& pods = trial_pods_[group];
  after == nullptr ? (void)pods.erase(key) : (void)pods.insert(key);
  if (pods.empty()) trial_pods_.erase(group);
}

std::vector<PodPtr> PodIndex::of_trial(const api::Trial& trial) const {
  std::set<kube::ObjectKey> keys;
  {
    const std::lock_guard lock(mutex_);
    const auto found = trial_pods_.find(trial_group(trial.metadata.ns, trial.metadata.name));
    if (found != trial_pods_.end()) keys = found->second;
  }
  return read(keys);
}

std::vector<PodPtr> PodIndex::unschedulable() const {
  std::set<kube::ObjectKey> keys;
  {
    const std::lock_guard lock(mutex_);
    keys = unschedulable_;
  }
  return read(keys);
}

std::vector<PodPtr> PodIndex::read(const std::set<kube::ObjectKey>& keys) const {
  std::vector<PodPtr> pods;
  for (const kube::ObjectKey& key : keys) {
    if (PodPtr pod = pods_.get(key)) pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace fettle::kubernetes
