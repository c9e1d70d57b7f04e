// Gangs: runs whose workers must all have a node before any of them can work.
//
// Two gangs that each hold a part of the GPUs would wait for each other for ever. So the Job of a
// gang is made suspended, and Jobs are opened one at a time, the oldest first; the next one when
// all pods of the one before have a node. At most one gang of an operator is therefore incomplete
// in each domain: pods that compete for the same nodes, told apart by node selector and GPU
// resource. Others may take what it waits for; so a gang that does not gather in time is returned:
// its Job is deleted, which frees its GPUs, and the run is started again at the end of the line.
// A deletion and not another suspension, because workers that are suspended may exit with 0, and
// the Job controller would count their part as done.
//
// Where a gang stands is written on its Job, so that this is a function of what is seen.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kubernetes/run_of_job.h"

namespace fettle::kubernetes {

// Of a Job of several workers: its GangState in words.
inline constexpr const char* kGangAnnotation = "fettle.dev/gang";
// When it was opened, by the operator's clock.
inline constexpr const char* kGangOpenedAnnotation = "fettle.dev/gang-opened";
inline constexpr const char* kGangDomainAnnotation = "fettle.dev/gang-domain";

enum class GangState {
  kNone,      // no gang: one worker
  kWaiting,   // suspended by us until it is its turn
  kOpen,      // its pods are made and look for nodes
  kGathered,  // all have had a node; what comes later is no matter of the line
  kReturned,  // it did not gather in time: to be deleted, and started again
  kStopped,   // suspended by us because the run was to stop
};
const char* to_string(GangState state);
GangState gang_state(const kube::Job& job);
// When its pods began to look for nodes.
std::int64_t gang_opened_ms(const kube::Job& job);
// Suspended, but not by us: a queue such as Kueue, or somebody by hand.
bool is_suspended_by_others(const kube::Job& job);

// The pods that compete with the Job's for nodes; "" = no gang.
std::string domain_of(const kube::Job& job);
// Whether it is, or may become, incomplete.
bool is_in_line(const kube::Job& job);

// How many ranks of the Job have a node.
std::int64_t workers_with_node(const kube::Job& job, const std::vector<PodPtr>& pods);

struct Gang {
  JobPtr job;
  std::int64_t with_node = 0;
};

// What is to be done about a gang: `to` is the state it comes into.
struct GangStep {
  JobPtr job;
  GangState to = GangState::kOpen;
};

// The steps for the gangs of one domain, in order. Steps that were taken already come again until
// they show.
std::vector<GangStep> next_gang_steps(std::vector<Gang> gangs, std::int64_t now_ms,
                                      std::int64_t timeout_ms);

}  // namespace fettle::kubernetes
