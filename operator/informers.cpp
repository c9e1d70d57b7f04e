#include "operator/informers.h"

#include <map>
#include <utility>

#include "runtime/kubernetes/pod/labels.h"

namespace fettle::op {
namespace {

// A page of Trials is parsed as a whole; with 50 points of a learning curve each Trial is some 10
// KB, and etcd would accept 1.5 MB.
constexpr int kTrialsAPage = 100;
// How long a list or watch may fail before Studies report it.
constexpr std::chrono::milliseconds kTroubleAfter{30'000};

kube::InformerOptions watching(const kube::Resource& resource, const InformersOptions& options,
                               std::string selector, std::uint64_t stream) {
  kube::InformerOptions out;
  out.resource = resource;
  out.namespaces = options.namespaces;
  out.label_selector = std::move(selector);
  out.seed = options.seed + (stream << 32);
  out.on_call = options.on_call;
  out.on_error = options.on_error;
  return out;
}

kube::InformerOptions watching_trials(const InformersOptions& options) {
  kube::InformerOptions out = watching(kube::kTrials, options, "", 1);
  out.page_size = kTrialsAPage;
  return out;
}

// Drops the annotations: they hold the trial file, the largest part of a pod, and the operator does
// not read it.
Result<kube::Pod> read_small_pod(const Json& object) {
  FETTLE_ASSIGN(kube::Pod pod, kube::read_pod(object));
  pod.metadata.annotations.clear();
  return pod;
}

}  // namespace

Informers::Informers(kube::HttpTransport& transport, const InformersOptions& options)
    : studies(transport, watching(kube::kStudies, options, "", 0), kubernetes::read_study_entry),
      trials(transport, watching_trials(options), kubernetes::read_trial_entry),
      jobs(transport, watching(kube::kJobs, options, kubernetes::kTrialLabel, 2), kube::read_job),
      pods(transport, watching(kube::kPods, options, kubernetes::kTrialLabel, 3), read_small_pod) {}

void Informers::start() {
  studies.start();
  trials.start();
  jobs.start();
  pods.start();
}

void Informers::stop() {
  studies.stop();
  trials.stop();
  jobs.stop();
  pods.stop();
}

bool Informers::complete(const std::string& ns) const {
  return studies.cache().synced(ns) && trials.cache().synced(ns) && jobs.cache().synced(ns) &&
         pods.cache().synced(ns);
}

std::string Informers::trouble(const std::string& ns) const {
  const auto first = [&](const auto& informer) { return informer.trouble(ns, kTroubleAfter); };
  auto error = first(studies);
  if (!error) error = first(trials);
  if (!error) error = first(jobs);
  if (!error) error = first(pods);
  return error ? "the operator does not see its objects as they are now: " + *error : "";
}

std::vector<Informers::Missing> Informers::missing() const {
  std::map<std::string, Missing> found;
  const auto add = [&](const auto& informer) {
    for (const auto& one : informer.missing()) {
      found.try_emplace(one.ns, Missing{one.ns, one.why, one.refused});
    }
  };
  add(studies);
  add(trials);
  add(jobs);
  add(pods);
  std::vector<Missing> out;
  for (auto& [ns, one] : found) out.push_back(std::move(one));
  return out;
}

}  // namespace fettle::op
