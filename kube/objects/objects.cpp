#include "kube/objects/objects.h"

#include <algorithm>

#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

std::optional<Owner> read_owner(const Json& object) {
  for (const Json& reference : array_at(object, {"metadata", "ownerReferences"})) {
    if (!boolean_at(reference, {"controller"})) continue;
    return Owner{text_at(reference, {"kind"}), text_at(reference, {"name"}),
                 text_at(reference, {"uid"})};
  }
  return std::nullopt;
}

std::vector<TrueCondition> read_conditions(const Json& object) {
  std::vector<TrueCondition> out;
  for (const Json& condition : array_at(object, {"status", "conditions"})) {
    if (text_at(condition, {"status"}) != "True") continue;
    out.push_back({text_at(condition, {"type"}), text_at(condition, {"reason"}),
                   text_at(condition, {"message"}), time_at(condition, {"lastTransitionTime"})});
  }
  return out;
}

// Returns the scheduler's reason for a pod without a node, from a condition that is False.
std::string read_unschedulable(const Json& pod) {
  for (const Json& condition : array_at(pod, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) == "PodScheduled" &&
        text_at(condition, {"status"}) == "False" &&
        text_at(condition, {"reason"}) == "Unschedulable") {
      return text_at(condition, {"message"});
    }
  }
  return "";
}

Container read_container(const Json& status) {
  Container out;
  out.name = text_at(status, {"name"});
  out.waiting_reason = text_at(status, {"state", "waiting", "reason"});
  out.waiting_message = text_at(status, {"state", "waiting", "message"});
  if (value_at(status, {"state", "running"}) != nullptr) {
    out.running = true;
    out.started_ms = time_at(status, {"state", "running", "startedAt"});
  }
  if (const Json* ended = value_at(status, {"state", "terminated"})) {
    out.terminated = true;
    out.started_ms = time_at(*ended, {"startedAt"});
    out.finished_ms = time_at(*ended, {"finishedAt"});
    out.exit_code = static_cast<int>(integer_at(*ended, {"exitCode"}));
    out.terminated_reason = text_at(*ended, {"reason"});
    out.termination_message = text_at(*ended, {"message"});
  }
  return out;
}

// An object of another kind, or without a name, is a programming error of the server or of Fettle.
// Any other field may be missing.
Status check_kind(const Json& object, std::string_view kind) {
  const std::string found = text_at(object, {"kind"});
  if (!found.empty() && found != kind) {
    return invalid("kind is " + found + ", expected " + std::string(kind));
  }
  if (text_at(object, {"metadata", "name"}).empty()) {
    return invalid(std::string(kind) + " without metadata.name");
  }
  return success();
}

}  // namespace

Result<Job> read_job(const Json& object) {
  FETTLE_TRY(check_kind(object, kJobs.kind));
  Job out;
  out.metadata = read_metadata(object);
  out.owner = read_owner(object);
  out.completions = integer_at(object, {"spec", "completions"}, 1);
  out.deadline_seconds = integer_at(object, {"spec", "activeDeadlineSeconds"});
  out.suspended = boolean_at(object, {"spec", "suspend"});
  out.active = integer_at(object, {"status", "active"});
  out.succeeded = integer_at(object, {"status", "succeeded"});
  out.failed = integer_at(object, {"status", "failed"});
  out.started_ms = time_at(object, {"status", "startTime"});
  out.conditions = read_conditions(object);
  for (const Json& gate : array_at(object, {"spec", "template", "spec", "schedulingGates"})) {
    out.scheduling_gates.push_back(text_at(gate, {"name"}));
  }
  return out;
}

Result<Pod> read_pod(const Json& object) {
  FETTLE_TRY(check_kind(object, kPods.kind));
  Pod out;
  out.metadata = read_metadata(object);
  out.owner = read_owner(object);
  // deletionTimestamp is the end of the grace period.
  const std::int64_t grace_s = integer_at(object, {"metadata", "deletionGracePeriodSeconds"});
  if (out.metadata.deleted_ms != 0) out.doomed_ms = out.metadata.deleted_ms - grace_s * 1000;
  out.node = text_at(object, {"spec", "nodeName"});
  out.phase = text_at(object, {"status", "phase"});
  out.reason = text_at(object, {"status", "reason"});
  out.message = text_at(object, {"status", "message"});
  out.started_ms = time_at(object, {"status", "startTime"});
  out.conditions = read_conditions(object);
  out.unschedulable = read_unschedulable(object);
  for (const Json& volume : array_at(object, {"spec", "volumes"})) {
    const std::string claim = text_at(volume, {"persistentVolumeClaim", "claimName"});
    if (!claim.empty()) out.claims.push_back(claim);
  }
  for (const Json& status : array_at(object, {"status", "containerStatuses"})) {
    out.containers.push_back(read_container(status));
  }
  return out;
}

const TrueCondition* find_condition(const std::vector<TrueCondition>& conditions,
                                    std::string_view type) {
  const auto found = std::ranges::find(conditions, type, &TrueCondition::type);
  return found == conditions.end() ? nullptr : &*found;
}

}  // namespace fettle::kube
