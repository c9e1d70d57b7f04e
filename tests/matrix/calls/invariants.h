// The invariants of a study life (docs/reliability.md), checked after every step. One thread.
//
//  a  A trial is Failed or infeasible only because of its own program, metric or memory. The
//     programs of the matrix make no mistake, so no trial ever is.
//  b  A trial without progress for kSilentMs states its reason in a condition of the Trial, and of
//     the Study if all its trials wait. The Study also reports a list or watch of the caches that
//     fails for kUntoldMs, although repeated lists make up for it. A pod whose trial is over is
//     gone after kHoldMs.
//  c  A fact, a final report and a reported step are never lost.
//  d  observe() never fails because of a write (study_life.h).
//  e  After the fault the Study ends as it would have without it (api_calls_test.cpp); nothing is
//     created twice.
//  f  An operator whose calls fail retries less and less often: it sends at most
//     kMaxWritesAMinute writes in any minute of virtual time.
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
// The Study reports a failed watch after half a minute, at its next reconcile.
inline constexpr std::int64_t kUntoldMs = 75'000;
inline constexpr std::int64_t kHoldMs = 120'000;
inline constexpr std::int64_t kSilentLogsMs = 120'000;
inline constexpr std::int64_t kMaxWritesAMinute = 400;

// Whether the trial's Study left it behind before its first run. Only its Study could start it, so
// it stays unchanged (core/trial/orphan_plan.cpp).
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
  std::int64_t blind_since_ms_ = 0;  // since when the Study has not reported a failed watch
  std::int64_t checked_ms_ = 0;
  std::int64_t minute_ms_ = 0;  // when the present minute began
  std::int64_t writes_ = 0;     // made by then
  std::set<std::string> said_;
  std::vector<std::string> violations_;
};

}  // namespace fettle::matrix
