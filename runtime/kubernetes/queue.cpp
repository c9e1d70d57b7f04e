#include "runtime/kubernetes/queue.h"

#include "api/names.h"
#include "core/endings.h"
#include "kube/labels.h"

namespace fettle::kubernetes {
namespace {

// A queue that takes a trial's nodes back deletes its pods. The Job must not fail by that: it keeps
// its place in the queue, and makes them again. Programs that end otherwise cost a run.
void ignore_gentle_exits(Json& spec) {
  Json& rules = *spec.find("podFailurePolicy")->find("rules");
  rules.push_back(Json::object(
      {{"action", "Ignore"},
       {"onExitCodes", Json::object({{"operator", "In"},
                                     {"values", Json::Array{Json(core::kStoppedBySigterm)}}})}}));
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
  const bool elastic = trial.workers.min < trial.workers.max;
  if (elastic) metadata.find("annotations")->set(kElasticJobAnnotation, "true");
  Json& spec = *job.find("spec");
  spec.set("suspend", true);
  ignore_gentle_exits(spec);
}

std::string queue_of(const kube::Job& job) {
  return kube::text_in(job.metadata.labels, kQueueLabel);
}

std::string why_queued(const kube::Job& job) {
  return "queue " + queue_of(job) + " has not admitted it: kubectl describe workloads -n " +
         job.metadata.ns + " -l " + kWorkloadJobLabel + "=" + job.metadata.uid +
         " says why; without such a queue, or without Kueue, it waits for ever";
}

}  // namespace fettle::kubernetes
