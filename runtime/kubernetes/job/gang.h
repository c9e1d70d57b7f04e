// Gang scheduling: all workers of a run must have a node before any of them can work.
//
// Two gangs that each hold a part of the GPUs would deadlock. So the Job of a gang is created
// suspended, and in each domain, that is, among the pods that compete for the same nodes (same node
// selector and GPU profile), at most one gang of an operator gathers: it was just opened, or it
// holds nodes and misses others. A gang that has no node is in nobody's way: once its scheduler has
// refused all its pods, or after kGatherMs, the next gang is opened beside it, but no second gang
// of its Study. So a tenant whose gangs can never be placed costs the others a moment, not a
// timeout each.
//
// The line is served by turns, first over the namespaces, then over the Studies of a namespace,
// then oldest first (gang_turns.h).
//
// Other workloads may take the nodes that a gang waits for, so a gang that is not complete in time
// is returned to the queue: its Job is deleted, which frees its GPUs, and its run starts again at
// the tail. It is returned after kGatherMs already if another gang has held nodes for longer, or if
// the cluster refuses to create some of its pods (a quota), because then it cannot become complete.
// So is a gang that was complete and lost a worker before it ran (is_incomplete_again). The Job is
// deleted rather than suspended again because suspended workers may exit with 0, which the Job
// controller would count as completed indexes.
//
// Pods that must not reach their scheduler in bulk (GpuPlacement::is_paced) queue in the same way:
// each is a gang of one.
//
// The state of a gang is an annotation of its Job, so these are functions of observed objects; only
// the turns are kept in memory.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kubernetes/job/run_of_job.h"

namespace fettle::kubernetes {

// Annotation of a Job that queues for nodes: its GangState.
inline constexpr const char* kGangAnnotation = "fettle.dev/gang";
// When the Job was resumed, by the operator's clock.
inline constexpr const char* kGangOpenedAnnotation = "fettle.dev/gang-opened";
inline constexpr const char* kGangDomainAnnotation = "fettle.dev/gang-domain";

enum class GangState {
  kNone,      // one worker that does not queue
  kWaiting,   // suspended by the operator until its turn
  kOpen,      // resumed; its pods are being scheduled
  kGathered,  // all workers have had a node; it has left the queue
  kReturned,  // not complete in time: its Job is deleted and its run starts again
  kStopped,   // suspended by the operator to stop the run
};
const char* to_string(GangState state);
GangState gang_state(const kube::Job& job);
// When its pods became schedulable.
std::int64_t gang_opened_ms(const kube::Job& job);
// Whether it is suspended, but not by the operator: by a queue such as Kueue, or by hand.
bool is_suspended_by_others(const kube::Job& job);

// Identifies the pods that compete with the Job's for nodes; "" = no gang.
std::string domain_of(const kube::Job& job);
// Whether the gang is, or may become, incomplete.
bool is_in_queue(const kube::Job& job);

// The number of ranks of the Job that have a node.
std::int64_t workers_with_node(const kube::Job& job, const std::vector<PodPtr>& pods);

// How long a gang may look for its first node, or miss a pod, while others wait behind it.
inline constexpr std::int64_t kGatherMs = 10'000;

// When the namespace of a gang and its Study were last served, as counters, and until when it
// leaves its turns to others.
struct GangTurn {
  std::int64_t ns = 0;
  std::int64_t study = 0;
  std::int64_t backoff_until_ms = 0;
};

struct Gang {
  JobPtr job;
  std::int64_t with_node = 0;
  std::int64_t with_pod = 0;  // ranks that have a pod
  std::int64_t refused = 0;   // ranks with a pod for which the scheduler finds no node
  std::int64_t held_ms = 0;   // when it got its first node; 0 = it holds none
  GangTurn turn = {};
};
Gang gang_of(JobPtr job, const std::vector<PodPtr>& pods);

// "namespace/study": gangs of one Study share their turns.
std::string study_of_gang(const kube::Job& job);
// Whether the Job waits, suspended, for its turn.
bool waits_for_turn(const kube::Job& job);

// A transition of a gang to the state `to`.
struct GangStep {
  JobPtr job;
  GangState to = GangState::kOpen;
};

// Why a gang that was not complete in time is returned. `timeout_ms`: the longest that it may wait.
std::string why_returned(const Gang& gang, std::int64_t now_ms, std::int64_t timeout_ms);

// The transitions for the gangs of one domain, in order. A transition is repeated until it is
// observed.
std::vector<GangStep> next_gang_steps(std::vector<Gang> gangs, std::int64_t now_ms,
                                      std::int64_t timeout_ms);

}  // namespace fettle::kubernetes
