#include "cli/cluster/pod_waits.h"

namespace fettle::cli {

std::string waiting_reason(const kube::Pod& pod, const std::string& container) {
  for (const kube::Container& candidate : pod.containers) {
    if (candidate.name != container) continue;
    if (candidate.running || candidate.terminated) return "";
    if (candidate.waiting_reason.empty()) break;  // the pod's own state says why, below
    std::string reason = candidate.waiting_reason;
    if (!candidate.waiting_message.empty()) reason += ": " + candidate.waiting_message;
    return reason;
  }
  if (!pod.unschedulable.empty()) return pod.unschedulable;
  return pod.phase == "Succeeded" || pod.phase == "Failed" ? "" : "pending";
}

}  // namespace fettle::cli
