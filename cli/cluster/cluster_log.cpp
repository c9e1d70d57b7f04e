#include "cli/cluster/cluster_log.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "api/study/pod_template.h"
#include "cli/cluster/cluster_objects.h"
#include "cli/cluster/pod_waits.h"
#include "cli/terminal/text.h"
#include "kube/objects/json_path.h"
#include "kube/objects/labels.h"
#include "kube/objects/objects.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::cli {
namespace {

constexpr std::chrono::milliseconds kWaitInterval{500};

// A pod of the trial, and its container for the trial (the worker contract): the one named
// `trainer`, else the first.
struct TrialPod {
  kube::Pod pod;
  std::string container;
};

std::string trial_container_name(const Json& pod) {
  const Json* const container = api::trial_container(pod);
  return container == nullptr ? "" : kube::text_at(*container, {"name"});
}

// Orders pods: larger is preferred. The newest run, then rank 0, then the newest pod.
auto preference_of(const TrialPod& candidate) {
  const api::Metadata& pod = candidate.pod.metadata;
  return std::tuple(kube::number_in(pod.labels, kubernetes::kRunLabel),
                    -kube::number_in(pod.labels, kube::kRankLabel), pod.created_ms);
}

Result<std::optional<TrialPod>> find_pod(kube::Client& client, const kube::ObjectKey& trial,
                                         const std::optional<std::int64_t>& run) {
  std::string selector = kubernetes::kTrialLabel + ("=" + trial.name);
  if (run) selector += std::string(",") + kubernetes::kRunLabel + '=' + std::to_string(*run);
  FETTLE_ASSIGN(const std::vector<Json> objects,
                client.list(kube::kPods, trial.ns, {std::move(selector), ""}));
  std::optional<TrialPod> best;
  for (const Json& object : objects) {
    FETTLE_ASSIGN(kube::Pod pod, kube::read_pod(object));
    TrialPod candidate{std::move(pod), trial_container_name(object)};
    if (!best || preference_of(*best) < preference_of(candidate)) best = std::move(candidate);
  }
  return best;
}

// Returns the reason that there is no pod.
Error explain_no_pod(kube::Client& client, const kube::ObjectKey& key,
                     const std::optional<std::int64_t>& run) {
  const auto object = client.get(kube::kTrials, key);
  if (!object.ok() && object.error().code == ErrorCode::kNotFound) {
    return not_found("no trial '" + printable(key.name) + "' in namespace " + key.ns);
  }
  if (!object.ok()) return object.error();
  const auto trial = read_trial_object(*object);
  if (!trial.ok()) return trial.error();
  const api::RunRecord* newest = newest_run(*trial);
  if (newest == nullptr) return not_found(key.name + " has not run yet");
  if (run && *run > newest->run) {
    return not_found(key.name + " has no run " + std::to_string(*run) + "; the newest is " +
                     std::to_string(newest->run));
  }
  std::string message = key.name +
                        " has no pod now: the pods of a run go, with their logs, once "
                        "its result is in the Trial";
  const std::string ending = ending_of(*trial);
  if (!ending.empty()) message += "; it ended: " + printable(ending);
  return not_found(std::move(message));
}

// Returns the pod once its container has begun. With `follow`, waits for that, and prints the
// reason.
Result<TrialPod> wait_for_pod(kube::Client& client, const kube::ObjectKey& trial,
                              const PodLogOptions& options) {
  std::string said;
  for (;;) {
    FETTLE_ASSIGN(std::optional<TrialPod> found, find_pod(client, trial, options.run));
    if (!found) return explain_no_pod(client, trial, options.run);
    const std::string waits = waiting_reason(found->pod, found->container);
    if (waits.empty()) return *std::move(found);
    const std::string sentence = found->pod.metadata.name + " has not started: " + printable(waits);
    if (!options.follow || options.stop.stop_requested()) {
      return Error{ErrorCode::kUnavailable, sentence};
    }
    if (sentence != said) std::cerr << "fettle: " << sentence << '\n';
    said = sentence;
    std::this_thread::sleep_for(kWaitInterval);
  }
}

}  // namespace

Status print_pod_log(kube::Client& client, const kube::ObjectKey& trial,
                     const PodLogOptions& options, const LogPrinter& print) {
  FETTLE_ASSIGN(const TrialPod found, wait_for_pod(client, trial, options));
  kube::Client::LogOptions log;
  log.container = found.container;
  log.follow = options.follow;
  const auto print_line = [&print](std::string_view line) {
    print(std::string(line) + '\n');
    return true;
  };
  return client.read_log({trial.ns, found.pod.metadata.name}, log, print_line, options.stop);
}

}  // namespace fettle::cli
