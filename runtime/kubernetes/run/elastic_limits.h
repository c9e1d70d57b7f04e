// ElasticLimits: what keeps an elastic Study from growing: pods of other Studies that wait for its
// nodes, and queues whose Kueue would preempt a trial that grows.
//
// Thread-safe. All that it is given must outlive it.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "api/study/study.h"
#include "core/control/clock.h"
#include "core/control/store.h"
#include "core/plan.h"
#include "kube/objects/objects.h"
#include "kube/watch/cache.h"
#include "runtime/kubernetes/run/pod_index.h"

namespace fettle::kubernetes {

class ElasticLimits {
 public:
  ElasticLimits(const PodIndex& pods, const kube::Cache<kube::Job>& jobs, control::Store& store,
                control::Clock& clock)
      : pods_(pods), jobs_(jobs), store_(store), clock_(clock) {}

  // Does nothing for a Study that does not size its trials by itself. An event names a queue that
  // forbids growth, once in the life of this process.
  void add_to(core::Capacity& capacity, const api::Study& study);

 private:
  void add_waiting_elsewhere(core::Capacity& capacity, const api::Study& study) const;
  bool competes(const api::Study& study, const kube::Pod& pod) const;
  std::vector<JobPtr> jobs_of(const api::Study& study) const;
  void announce_fixed_size(const api::Study& study, const std::string& queue);

  const PodIndex& pods_;
  const kube::Cache<kube::Job>& jobs_;
  control::Store& store_;
  control::Clock& clock_;
  std::mutex mutex_;
  // Uids of Studies with an event that they do not grow; guarded by mutex_.
  std::set<std::string> announced_;
};

}  // namespace fettle::kubernetes
