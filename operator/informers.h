// The four informers of the controllers: Studies, Trials, and the Jobs and pods of trials.
//
// KubeStore and JobRuns set the caches' indexes and listeners: create them after the informers and
// before start(). Started and stopped by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kube/client/http.h"
#include "kube/objects/objects.h"
#include "kube/watch/informer.h"
#include "runtime/kubernetes/store/entries.h"

namespace fettle::op {

struct InformersOptions {
  std::vector<std::string> namespaces;  // empty = all
  std::uint64_t seed = 0;               // of the jitter of reconnections
  std::function<void(const kube::CallMade&)> on_call;
  std::function<void(const std::string& message)> on_error;
};

class Informers {
 public:
  // `transport` must outlive the informers.
  Informers(kube::HttpTransport& transport, const InformersOptions& options);

  void start();
  void stop();
  // Whether all four resources of a namespace were listed once.
  bool complete(const std::string& ns) const;
  // Why the cached objects of a namespace may be stale; "" = they are current.
  std::string trouble(const std::string& ns) const;
  // The namespaces that are not complete ("" = the whole cluster), one entry each.
  struct Missing {
    std::string ns;
    std::string why;       // error of the first missing list; "" = it is in progress
    bool refused = false;  // the API server refuses the list: the namespace may be deleted
  };
  std::vector<Missing> missing() const;

  kube::Informer<kubernetes::StudyEntry> studies;
  kube::Informer<kubernetes::TrialEntry> trials;
  kube::Informer<kube::Job> jobs;
  kube::Informer<kube::Pod> pods;
};

}  // namespace fettle::op
