// The invariants of a study life (docs/reliability.md), checked after every step. One thread.
//
//  a  A trial is Failed or infeasible only because of its own program, metric or memory. The
//     programs of the matrix do nothing wrong, so none is ever.
//  b  What makes no progress for kSilentMs says in a condition of the Trial, and of the Study where
//     all of it waits, what it waits for. A list or watch of the caches that fails for kUntoldMs is
//     told by the Study, too, although repeated lists make up for it. A pod whose trial is over is
//     gone after kHoldMs.
//  c  A fact, a final report and a reported step are never lost.
//  d  observe() never fails because of a write (study_life.h).
//  e  Once the fault is gone the Study ends as it would have (api_calls_test.cpp); nothing is
//     created twice.
//  f  An operator whose calls fail tries again less and less often: in no minute of virtual time
//     does it send more than kMaxWritesAMinute writes.
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
// A watch that fails is told after half a minute, by the next look at the Study.
inline constexpr std::int64_t kUntoldMs = 75'000;
inline constexpr std::int64_t kHoldMs = 120'000;
inline constexpr std::int64_t kSilentLogsMs = 120'000;
inline constexpr std::int64_t kMaxWritesAMinute = 400;

// A trial that its Study left behind before it had a run. Only its Study could start it, so it
// stays as it is (core/orphan_plan.cpp).
bool is_left_unbegun(const Json& trial);

class Invariants {
 public:
  // `calls`: the operator's.
  Invariants(kube::FakeApiServer& server, VirtualTime& time, const FaultState& fault,
             const FaultyTransport& calls, const PlayedCluster& cluster, std::string study);

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
  bool is_study_gone() const;
  bool is_garbage(const Json& trial) const;
  void check_trial(const Json& trial);
  void check_progress(const Json& trial, TrialSeen& seen);
  void check_kept(const Json& trial, TrialSeen& seen);
  void check_study();
  void check_sight(const Json& study);
  void check_load();
  bool can_speak_of(const char* resource) const;
  bool has_two_studies() const;
  std::int64_t most_silent_ms() const;

  kube::FakeApiServer& server_;
  VirtualTime& time_;
  const FaultState& fault_;
  const FaultyTransport& calls_;
  const PlayedCluster& cluster_;
  const std::string study_;
  std::map<std::string, TrialSeen> trials_;
  std::string study_progress_;
  std::int64_t study_since_ms_ = 0;
  std::int64_t blind_since_ms_ = 0;  // since then the Study has not told that a watch fails
  std::int64_t checked_ms_ = 0;
  std::int64_t minute_ms_ = 0;  // when the present minute began
  std::int64_t writes_ = 0;     // that had been made by then
  std::set<std::string> said_;
  std::vector<std::string> violations_;
};

}  // namespace fettle::matrix
