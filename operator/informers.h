// The four informers that the controllers live on: Studies, Trials, and the Jobs and pods of
// trials.
//
// Make KubeStore and JobRuns between making these and starting them, for they set the caches'
// indexes and listeners. Started and stopped by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kube/http.h"
#include "kube/informer.h"
#include "kube/objects.h"
#include "runtime/kubernetes/entries.h"

namespace fettle::op {

struct InformersOptions {
  std::vector<std::string> namespaces;  // empty = all
  std::uint64_t seed = 0;               // of the jitter of reconnections
  std::function<void(const kube::CallMade&)> on_call;
  std::function<void(const std::string& message)> on_trouble;
};

class Informers {
 public:
  // `transport` outlives the informers.
  Informers(kube::HttpTransport& transport, const InformersOptions& options);

  void start();
  void stop();
  // Waits until everything was listed once; false when `most` passed.
  bool wait_synced(std::chrono::milliseconds most);
  // What is wrong with a list or watch now; nothing when all go well.
  std::optional<std::string> last_error() const;

  kube::Informer<kubernetes::StudyEntry> studies;
  kube::Informer<kubernetes::TrialEntry> trials;
  kube::Informer<kube::Job> jobs;
  kube::Informer<kube::Pod> pods;
};

}  // namespace fettle::op
