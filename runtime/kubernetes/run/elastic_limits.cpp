#include "runtime/kubernetes/run/elastic_limits.h"

#include <algorithm>

#include "core/facts/sizing.h"
#include "core/names.h"
#include "core/study/elastic.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/job/queue.h"

namespace fettle::kubernetes {
namespace {

std::string study_name_of(const api::Metadata& metadata) {
  return kube::text_in(metadata.labels, core::kStudyLabel);
}

bool is_of(const api::Study& study, const api::Metadata& metadata) {
  return metadata.ns == study.metadata.ns && study_name_of(metadata) == study.metadata.name;
}

}  // namespace

void ElasticLimits::add_to(core::Capacity& capacity, const api::Study& study) {
  if (!core::sizes_itself(study.spec)) return;
  add_waiting_elsewhere(capacity, study);
  const std::vector<JobPtr> jobs = jobs_of(study);
  const auto fixed = std::ranges::find_if(jobs, [](const JobPtr& job) { return !may_grow(*job); });
  capacity.may_grow = fixed == jobs.end();
  if (!capacity.may_grow) announce_fixed_size(study, queue_of(**fixed));
}

// Adds, for pods of other Studies without a node, the creation time and the Study of the oldest.
// Only competing pods for which the scheduler finds no node count. A pod that has waited for
// kTryAgainMs, while Studies made room, waits for something else: a label that no node has, or a
// larger node.
void ElasticLimits::add_waiting_elsewhere(core::Capacity& capacity, const api::Study& study) const {
  for (const PodPtr& pod : pods_.unschedulable()) {
    const api::Metadata& metadata = pod->metadata;
    // Checked again, because the pod in the cache may be newer than the index.
    if (pod->unschedulable.empty() || !pod->node.empty() || metadata.deleted_ms != 0) continue;
    if (clock_.now_ms() >= metadata.created_ms + core::kTryAgainMs) continue;
    const bool is_older =
        !capacity.waiting_elsewhere_ms || metadata.created_ms < *capacity.waiting_elsewhere_ms;
    const std::string name = study_name_of(metadata);
    // name "": the pod belongs to no Study.
    if (!is_older || name.empty() || is_of(study, metadata) || !competes(study, *pod)) continue;
    capacity.waiting_elsewhere_ms = metadata.created_ms;
    capacity.who_waits = metadata.ns + "/" + name;
  }
}

// Whether a pod of another Study may get the nodes of this Study's pods: both use GPUs or neither
// does, and if both have gangs, these share a domain (gang.h).
bool ElasticLimits::competes(const api::Study& study, const kube::Pod& pod) const {
  const Result<api::Study> other = store_.get_study({pod.metadata.ns, study_name_of(pod.metadata)});
  if (!other.ok() || other->spec.trial.gpu.has_value() != study.spec.trial.gpu.has_value()) {
    return false;
  }
  const JobPtr job = pod.owner ? jobs_.get({pod.metadata.ns, pod.owner->name}) : JobPtr();
  const std::string domain = job == nullptr ? "" : domain_of(*job);  // "": no gang
  const std::vector<JobPtr> jobs = jobs_of(study);
  const auto gang =
      std::ranges::find_if(jobs, [](const JobPtr& one) { return !domain_of(*one).empty(); });
  return domain.empty() || gang == jobs.end() || domain == domain_of(**gang);
}

std::vector<JobPtr> ElasticLimits::jobs_of(const api::Study& study) const {
  std::vector<JobPtr> jobs = jobs_.all();
  std::erase_if(jobs, [&](const JobPtr& job) { return !is_of(study, job->metadata); });
  return jobs;
}

void ElasticLimits::announce_fixed_size(const api::Study& study, const std::string& queue) {
  {
    const std::lock_guard lock(mutex_);
    if (!announced_.insert(study.metadata.uid).second) return;
  }
  store_.record_event({control::Kind::kStudy, {study.metadata.ns, study.metadata.name}, ""},
                      /*warning=*/false, "FixedSize",
                      "its trials keep " + std::to_string(study.spec.trial.workers.min) +
                          " workers: Kueue would preempt a trial that grows in queue " + queue +
                          ", because its feature gate ElasticJobsViaWorkloadSlices is off",
                      clock_.now_ms());
}

}  // namespace fettle::kubernetes
