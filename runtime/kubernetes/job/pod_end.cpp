#include "runtime/kubernetes/job/pod_end.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/trial/report.h"
#include "core/trial/endings.h"
#include "runtime/kubernetes/job/gpu_memory_end.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/metric_lines.h"

namespace fettle::kubernetes {
namespace {

// The part of a termination message that fits into a condition's message, in bytes.
constexpr std::size_t kLastWords = 800;

// Volumes and network of a pod are set up within this time, unless something is wrong.
constexpr std::int64_t kPrepareMs = 120'000;

constexpr std::array<std::string_view, 4> kOrdinaryWaits = {"", "ContainerCreating",
                                                            "PodInitializing", "Unknown"};
constexpr std::array<std::string_view, 6> kImageErrors = {
    "ErrImagePull",      "ImagePullBackOff",  "InvalidImageName",
    "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"};

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::ranges::find(list, text) != list.end();
}

std::string_view trimmed(std::string_view text) {
  static constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t from = text.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return "";
  return text.substr(from, text.find_last_not_of(kBlank) + 1 - from);
}

bool is_one_object(std::string_view text) {
  return !text.empty() && text.front() == '{' && text.find('\n') == std::string_view::npos;
}

// Whether `c` continues a UTF-8 character.
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// "; its last output:\n..." or "".
std::string last_words(const kube::Container& container) {
  std::string_view text = trimmed(container.termination_message);
  if (text.empty() || is_one_object(text)) return "";
  std::size_t from = text.size() > kLastWords ? text.size() - kLastWords : 0;
  while (from < text.size() && is_continuation(text[from])) ++from;
  return "; its last output:\n" + std::string(text.substr(from));
}

using core::EndCondition;

// The table's judgement of an end with this exit code, or without one.
PodEnd judge(EndCondition condition, std::optional<int> code, std::int64_t at_ms) {
  core::JudgedExit judged =
      core::judge_exit({.host = core::Host::kContainer, .code = code, .condition = condition});
  return {.outcome = judged.outcome,
          .reason = std::move(judged.reason),
          .at_ms = at_ms,
          .replaced = false,
          .presumed = judged.presumed,
          .exit_code = {},
          .gpu_memory_short = {}};
}

EndCondition condition_of(const kube::Container& container) {
  const std::string& why = container.terminated_reason;
  if (why == "OOMKilled") return EndCondition::kOverMemoryLimit;
  const bool never_ran = why == "ContainerCannotRun" || why == "StartError";
  return never_ran ? EndCondition::kCannotStart : EndCondition::kNone;
}

PodEnd by_container(const kube::Container& container) {
  const EndCondition condition = condition_of(container);
  PodEnd end = judge(condition, container.exit_code, container.finished_ms);
  end.exit_code = container.exit_code;
  if (condition == EndCondition::kCannotStart) {
    end.reason += ": " + std::string(trimmed(container.termination_message)) +
                  "; correct command, args or image in the Study's template";
  } else {
    const bool failed = condition == EndCondition::kNone && end.outcome == api::Outcome::kFailed;
    if (failed) end.gpu_memory_short = gpu_memory_short(container.termination_message);
    if (end.gpu_memory_short) {
      end.outcome = api::Outcome::kOutOfMemory;
      end.reason += ", out of the GPU's memory (spec.trial.gpu)";
    }
    end.reason += last_words(container);
  }
  return end;
}

// Judges a pod that failed as a whole, without an exit code: the kubelet did not admit it (no room,
// a device gone), or an init container failed.
PodEnd by_pod(const kube::Pod& pod) {
  const bool by_node = !pod.reason.empty();  // the failure of an init container has no reason
  PodEnd end = judge(by_node ? EndCondition::kPodRefused : EndCondition::kPodNeverBegan,
                     std::nullopt, /*at_ms=*/0);
  end.reason += by_node ? ": " + pod.reason + ": " + pod.message : " " + pod.message;
  return end;
}

std::string describe(const kube::TrueCondition& condition) {
  const std::string words = " (" + condition.reason + ") and is made again";
  return condition.message.empty() ? words : words + ": " + condition.message;
}

// The part that the messages of ErrImagePull and of the following ImagePullBackOff share, so that
// the reason does not alternate.
std::string image_error(const std::string& message) {
  static constexpr std::string_view kMarker = "ErrImagePull: ";
  const std::size_t at = message.find(kMarker);
  return at == std::string::npos ? message : message.substr(at + kMarker.size());
}

// A pod gets its volumes and its sandbox with the network before images are pulled: if the
// container has no status for long, volumes or network are missing.
std::string why_not_ready(const kube::Pod& pod, std::int64_t now_ms) {
  const auto* scheduled = kube::find_condition(pod.conditions, "PodScheduled");
  const bool prepared =
      pod.phase != "Pending" ||
      kube::find_condition(pod.conditions, "PodReadyToStartContainers") != nullptr;
  if (prepared || scheduled == nullptr || now_ms - scheduled->since_ms < kPrepareMs) return "";
  std::string words = "its node " + pod.node + " has not prepared it for " +
                      std::to_string(kPrepareMs / 60'000) + " minutes; ";
  if (pod.claims.empty()) {
    words += "is a Secret, ConfigMap or volume that it mounts missing?";
  } else {
    words += "perhaps claim " + pod.claims.front() +
             " is attached to another node: a ReadWriteOnce volume serves one at a time";
  }
  return words + " (kubectl describe pod -n " + pod.metadata.ns + " " + pod.metadata.name + ")";
}

bool ended_well(const kube::Pod& pod, const kube::Container* container) {
  if (container != nullptr && container->terminated) return container->exit_code == 0;
  return pod.phase == "Succeeded";
}

// Whether the pod was evicted or deleted before it ended. Many programs exit with 0 on SIGTERM.
bool was_asked_to_end(const kube::Pod& pod, std::int64_t ended_ms) {
  if (ended_ms == 0) return false;  // its time is unknown
  const auto* disrupted = kube::find_condition(pod.conditions, "DisruptionTarget");
  if (disrupted != nullptr && disrupted->since_ms <= ended_ms) return true;
  return pod.doomed_ms != 0 && pod.doomed_ms <= ended_ms;
}

}  // namespace

const kube::Container* trial_container_in(const kube::Pod& pod, const std::string& name) {
  const auto found = std::ranges::find(pod.containers, name, &kube::Container::name);
  return found == pod.containers.end() ? nullptr : &*found;
}

bool is_running(const kube::Pod& pod, const std::string& container) {
  const kube::Container* trial = trial_container_in(pod, container);
  return trial == nullptr ? pod.phase == "Running" : trial->running;
}

bool has_ended(const kube::Pod& pod, const std::string& container) {
  const kube::Container* trial = trial_container_in(pod, container);
  return (trial != nullptr && trial->terminated) || pod.phase == "Succeeded" ||
         pod.phase == "Failed";
}

std::optional<PodEnd> end_of_pod(const kube::Pod& pod, const std::string& container,
                                 bool stop_asked) {
  if (!has_ended(pod, container)) return std::nullopt;
  const kube::Container* trial = trial_container_in(pod, container);
  const bool terminated = trial != nullptr && trial->terminated;
  const std::int64_t at_ms = terminated ? trial->finished_ms : 0;
  const bool well = ended_well(pod, trial);
  // An exit with 0 after an eviction or deletion is no success: many programs exit so on SIGTERM.
  // After our own stop, judge_run() decides what the exit means.
  if (well && (stop_asked || !was_asked_to_end(pod, at_ms))) {
    return judge(EndCondition::kNone, 0, at_ms);
  }
  if (stop_asked) return judge(EndCondition::kStopAsked, std::nullopt, at_ms);
  if (const auto* disrupted = kube::find_condition(pod.conditions, "DisruptionTarget")) {
    PodEnd end = judge(EndCondition::kPodDisrupted, std::nullopt, at_ms);
    end.reason += describe(*disrupted);
    end.replaced = !well;         // the Job controller counts an exit with 0 as complete
    if (well) end.exit_code = 0;  // a success if the last step is reported (judge_run)
    return end;
  }
  if (pod.metadata.deleted_ms != 0) {
    PodEnd end = judge(EndCondition::kPodDeleted, std::nullopt, at_ms);
    if (well) end.exit_code = 0;
    return end;
  }
  if (pod.reason == "DeadlineExceeded") {  // the pod's own activeDeadlineSeconds
    return judge(EndCondition::kOverTimeLimit, std::nullopt, at_ms);
  }
  return terminated ? by_container(*trial) : by_pod(pod);
}

std::string why_overdue(const kube::Pod& pod, bool fenced) {
  const std::string words = "its node " + pod.node + " does not answer: the pod should have ended";
  if (!must_be_gone(pod, fenced)) {
    return words + "; it is given up after " + std::to_string(kLostMs / 60'000) + " minutes";
  }
  return words + " and may still write to claim " + pod.claims.front() +
         ", so no other run begins before it is gone. If the node is off: kubectl delete pod -n " +
         pod.metadata.ns + " " + pod.metadata.name + " --force";
}

bool is_ending(const kube::Pod& pod, const std::string& container) {
  return pod.metadata.deleted_ms != 0 && !has_ended(pod, container);
}

bool was_refused(const std::string& reason) {
  return reason.find("UnexpectedAdmissionError") != std::string::npos;
}

std::string why_waiting(const kube::Pod& pod, const std::string& container, std::int64_t now_ms) {
  if (!pod.unschedulable.empty()) return "no node has room for it: " + pod.unschedulable;
  const kube::Container* trial = trial_container_in(pod, container);
  // Also for a container that does not wait, whose waiting_reason is "".
  if (trial == nullptr || is_one_of(trial->waiting_reason, kOrdinaryWaits)) {
    return why_not_ready(pod, now_ms);
  }
  if (is_one_of(trial->waiting_reason, kImageErrors)) {
    return "its image cannot be pulled: " + image_error(trial->waiting_message);
  }
  return "its container cannot be started (" + trial->waiting_reason +
         "): " + trial->waiting_message;
}

std::optional<api::Report> read_termination_message(const kube::Container& container) {
  const std::string_view text = trimmed(container.termination_message);
  if (text.size() > api::kMaxTerminationMessage || !is_one_object(text)) return std::nullopt;
  runtime::MetricLines lines({});
  lines.feed(text, container.finished_ms);
  lines.finish(container.finished_ms);
  if (!lines.has_report()) return std::nullopt;
  return lines.report();
}

}  // namespace fettle::kubernetes
