#include "runtime/kubernetes/job/queue.h"

#include <algorithm>
#include <utility>

#include "api/study/study_names.h"
#include "core/trial/endings.h"
#include "kube/objects/labels.h"

namespace fettle::kubernetes {
namespace {

// A queue that takes a trial's nodes back deletes its pods. The Job must not fail by that: it keeps
// its place in the queue, and makes them again. Programs that exit with another code cost a run.
void ignore_graceful_exits(Json& spec) {
  Json& rules = *spec.find("podFailurePolicy")->find("rules");
  rules.push_back(Json::object(
      {{"action", "Ignore"},
       {"onExitCodes", Json::object({{"operator", "In"},
                                     {"values", Json::Array{Json(core::kStoppedBySigterm)}}})}}));
}

std::string queued_as(const std::string& queue, const std::string& priority) {
  return queue + "/" + priority;
}

}  // namespace

bool names_kueue(const api::TrialTemplate& trial) {
  return !trial.queue.empty() && !api::gang_has_queue(trial.gang);
}

void join_queue(const api::TrialTemplate& trial, Json& job) {
  Json& metadata = *job.find("metadata");
  Json& labels = *metadata.find("labels");
  labels.set(kQueueLabel, trial.queue);
  if (!trial.queue_priority.empty()) labels.set(kQueuePriorityLabel, trial.queue_priority);
  Json& annotations = *metadata.find("annotations");
  annotations.set(kQueuedAsAnnotation, queued_as(trial.queue, trial.queue_priority));
  const bool elastic = trial.workers.min < trial.workers.max;
  if (elastic) annotations.set(kElasticJobAnnotation, "true");
  Json& spec = *job.find("spec");
  spec.set("suspend", true);
  ignore_graceful_exits(spec);
}

std::string queue_of(const kube::Job& job) {
  return kube::text_in(job.metadata.labels, kQueueLabel);
}

bool is_suspended_by_queue(const kube::Job& job) { return job.suspended && !queue_of(job).empty(); }

bool may_grow(const kube::Job& job) {
  return queue_of(job).empty() ||
         std::ranges::find(job.scheduling_gates, kElasticJobGate) != job.scheduling_gates.end();
}

std::optional<Json> moved_queue(const api::TrialTemplate& trial, const kube::Job& job) {
  const std::string before = kube::text_in(job.metadata.annotations, kQueuedAsAnnotation);
  // "": Fettle did not put the Job into a queue.
  if (before.empty() || !names_kueue(trial)) return std::nullopt;
  const std::size_t slash = before.find('/');
  const std::string old_priority = before.substr(slash + 1);
  const std::string queue = job.suspended ? trial.queue : before.substr(0, slash);
  // Kueue refuses to take a class away, and to give a running Job its first one.
  const bool keeps = trial.queue_priority.empty() || (!job.suspended && old_priority.empty());
  const std::string priority = keeps ? old_priority : trial.queue_priority;
  const std::string after = queued_as(queue, priority);
  if (after == before) return std::nullopt;
  // Kueue lets no running Job change its queue.
  Json labels = Json::object({{kQueueLabel, job.suspended ? queue : queue_of(job)}});
  if (!priority.empty()) labels.set(kQueuePriorityLabel, priority);
  return Json::object({{"labels", std::move(labels)},
                       {"annotations", Json::object({{kQueuedAsAnnotation, after}})}});
}

}  // namespace fettle::kubernetes
