// StudyLife: one Study from its creation to its end, against an API server in memory, under virtual
// time, with the production stack (client, watch protocol, caches, store, runs, controllers) and
// at most one fault. After every step the invariants are checked (invariants.h). One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/control/manager.h"
#include "core/control/observer.h"
#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "kube/testing/fake_api_server.h"
#include "runtime/kubernetes/run/job_runs.h"
#include "runtime/kubernetes/store/entries.h"
#include "runtime/kubernetes/store/kube_store.h"
#include "tests/matrix/calls/faults.h"
#include "tests/matrix/calls/invariants.h"
#include "tests/matrix/calls/played_cluster.h"
#include "tests/matrix/calls/stepped_watch.h"
#include "tests/matrix/calls/study_shapes.h"
#include "tests/matrix/calls/virtual_time.h"

namespace fettle::matrix {

// The part of a life that must be the same with and without a fault: for each trial, by name, its
// parameters, its end and its result.
struct LifeResult {
  std::string study;  // its end
  std::map<std::string, std::string> trials;
};
bool is_like(const LifeResult& result, const LifeResult& usual);
std::string to_string(const LifeResult& result);

class StudyLife {
 public:
  StudyLife(const StudyShape& shape, const FaultPlan& plan);
  ~StudyLife();

  void run();

  const FaultState& fault() const { return fault_; }
  const LifeResult& result() const { return result_; }
  const std::vector<std::string>& violations() const { return invariants_.violations(); }
  const std::set<std::string>& calls_without_row() const;
  std::int64_t virtual_ms() const { return time_.since_begin_ms(); }

 private:
  // Forwards to JobRuns; an observe() that fails although only writes failed is a violation.
  class CheckedRuns;

  std::string trouble() const;
  void apply_studies();
  bool advance();
  void play_user();
  void move_phase();
  bool goes_when_over() const;
  bool is_done();
  void read_result();
  Json study();

  const StudyShape& shape_;
  VirtualTime time_;
  kube::FakeApiServer server_;
  FaultState fault_;
  FaultyTransport transport_;
  FaultyTransport trainer_transport_;
  kube::Client client_;
  kube::Client trainer_client_;
  PlayedCluster cluster_;
  SteppedWatch<kubernetes::StudyEntry> studies_;
  SteppedWatch<kubernetes::TrialEntry> trials_;
  SteppedWatch<kube::Job> jobs_;
  SteppedWatch<kube::Pod> pods_;
  kubernetes::KubeStore store_;
  kubernetes::JobRuns runs_;
  std::unique_ptr<CheckedRuns> checked_;
  control::Observer observer_;
  std::unique_ptr<control::Manager> manager_;
  Invariants invariants_;
  LifeResult result_;
  std::int64_t suspended_ms_ = 0;
  bool is_orphaned_ = false;
};

}  // namespace fettle::matrix
