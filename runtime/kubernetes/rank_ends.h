// Which of its workers explains how a run of several ended.
//
// When one worker is lost the others fail soon after, and when one fails the Job controller ends
// the others: what counts is what came first. A failure is the trial's own, and may be held against
// its configuration, only where nothing had happened to another worker before it: none was
// disrupted, deleted or made again, and none had never run. A program that says it misses the
// others (kWorkerMissesOthers) is never at fault. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/kubernetes/pod_end.h"
#include "runtime/kubernetes/run_of_job.h"

namespace fettle::kubernetes {

struct RankEnd {
  std::int64_t rank = 0;
  PodEnd end;
};

// `pods`: the newest of each rank that the Job has. Nothing: the run continues.
std::optional<RankEnd> end_of_ranks(const JobView& view,
                                    const std::map<std::int64_t, PodPtr>& pods);

// Whether the pod's program may still do something, such as write a checkpoint. A node that is lost
// says nothing of its pods: they are given up some time after their grace period.
bool may_live(const kube::Pod& pod, const std::string& container, std::int64_t now_ms);

}  // namespace fettle::kubernetes
