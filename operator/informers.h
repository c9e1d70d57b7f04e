// The four informers that the controllers live on: Studies, Trials, and the Jobs and pods of
// trials.
//
// Make KubeStore and JobRuns between making these and starting them, for they set the caches'
// indexes and listeners. Started and stopped by one thread.
#pragma once

#include <cstdint>
#include <functional>
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
  // Whether all there is of a namespace was listed once.
  bool complete(const std::string& ns) const;
  // The namespaces that are not complete ("" = all there are), one entry each.
  struct Missing {
    std::string ns;
    std::string why;       // of the first list that is missing; "" = it is under way
    bool refused = false;  // the API server answers, but does not list it: it may be deleted
  };
  std::vector<Missing> missing() const;

  kube::Informer<kubernetes::StudyEntry> studies;
  kube::Informer<kubernetes::TrialEntry> trials;
  kube::Informer<kube::Job> jobs;
  kube::Informer<kube::Pod> pods;
};

}  // namespace fettle::op
