// Finds the worker whose end is the cause of a run's end.
//
// When one worker is lost, the others fail soon after; when one fails, the Job controller ends the
// others. So the earliest event counts. A failure counts against the trial's configuration only if
// no other worker was disrupted, deleted or replaced before it, and no awaited worker had never
// run. A program that exits because its peers are gone (kWorkerMissesOthers) is never at fault.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/kubernetes/job/pod_end.h"
#include "runtime/kubernetes/job/run_of_job.h"

namespace fettle::kubernetes {

struct RankEnd {
  std::int64_t rank = 0;
  PodEnd end;
};

// `pods`: the newest pod of each rank. Absent: the run continues.
std::optional<RankEnd> end_of_ranks(const JobView& view,
                                    const std::map<std::int64_t, PodPtr>& pods);

// Whether the pod's program runs, or may still get a node to run on, and then writes a checkpoint.
// A lost node does not report the end of its pods: they count as dead some time after their grace
// period, except pods that must_be_gone(). `container` "": only the pod as a whole counts.
bool may_write(const kube::Pod& pod, const std::string& container, bool fenced,
               std::int64_t now_ms);
// The same for a pod that has a node.
bool may_be_alive(const kube::Pod& pod, const std::string& container, bool fenced,
                  std::int64_t now_ms);

// Whether an elastic run can grow now. While a worker that a resize removed has not ended, growing
// would give it its rank back, and its end would be the end of the run; while others have done all
// their work, a new worker would find no peers.
bool may_add_workers(const kube::Job& job, const std::vector<PodPtr>& pods, std::int64_t now_ms);

}  // namespace fettle::kubernetes
