// PodIndex: finds pods otherwise than by their Job: the pods of a trial, and the pods for which the
// scheduler finds no node.
//
// Thread-safe. The cache must outlive it, and reports its changes to update().
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "api/trial/trial.h"
#include "kube/objects/objects.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/job/run_of_job.h"

namespace fettle::kubernetes {

class PodIndex {
 public:
  explicit PodIndex(const kube::Cache<kube::Pod>& pods) : pods_(pods) {}

  // `after`: null if the pod is gone.
  void update(const PodPtr& before, const PodPtr& after);

  // The pods of all runs, including runs whose Job is gone.
  std::vector<PodPtr> of_trial(const api::Trial& trial) const;
  std::vector<PodPtr> unschedulable() const;

 private:
  std::vector<PodPtr> read(const std::set<kube::ObjectKey>& keys) const;

  const kube::Cache<kube::Pod>& pods_;
  mutable std::mutex mutex_;                                     // guards the rest
  std::map<std::string, std::set<kube::ObjectKey>> trial_pods_;  // by trial_group()
  std::set<kube::ObjectKey> unschedulable_;
};

}  // namespace fettle::kubernetes
