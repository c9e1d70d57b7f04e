// The invariants of a study life (docs/reliability.md), checked after every step. One thread.
//
//  a  A trial is Failed or infeasible only because of its own program, metric or memory. The
//     programs of the matrix do nothing wrong, so none is ever.
//  b  What makes no progress for kSilentMs says in a condition of the Trial, and of the Study where
//     all of it waits, what it waits for. A pod whose trial is over is gone after kHoldMs.
//  c  A fact, a final report and a reported step are never lost.
//  d  observe() never fails because of a write (study_life.h).
//  e  Once the fault is gone the Study ends as it would have (api_calls_test.cpp); nothing is
//     created twice.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "kube/testing/fake_api_server.h"
#include "tests/matrix/calls/faults.h"
#include "tests/matrix/calls/played_cluster.h"
#include "tests/matrix/calls/virtual_time.h"

namespace fettle::matrix {

inline constexpr std::int64_t kSilentMs = 65'000;
inline constexpr std::int64_t kHoldMs = 120'000;

class Invariants {
 public:
  Invariants(kube::FakeApiServer& server, VirtualTime& time, const FaultState& fault,
             const PlayedCluster& cluster, std::string study);

  void check();
  void add(const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct TrialSeen {
    std::string uid;
    std::string progress;
    std::int64_t since_ms = 0;
    std::int64_t step = 0;
    std::size_t facts = 0;
    bool final_report = false;
    std::int64_t over_ms = 0;
  };
  bool is_garbage(const Json& trial) const;
  void check_trial(const Json& trial);
  void check_progress(const Json& trial, TrialSeen& seen);
  void check_kept(const Json& trial, TrialSeen& seen);
  void check_study();
  bool can_speak_of(const char* resource) const;
  std::int64_t most_silent_ms() const;

  kube::FakeApiServer& server_;
  VirtualTime& time_;
  const FaultState& fault_;
  const PlayedCluster& cluster_;
  const std::string study_;
  std::map<std::string, TrialSeen> trials_;
  std::string study_progress_;
  std::int64_t study_since_ms_ = 0;
  std::int64_t checked_ms_ = 0;
  std::set<std::string> said_;
  std::vector<std::string> violations_;
};

}  // namespace fettle::matrix
