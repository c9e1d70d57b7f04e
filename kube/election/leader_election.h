// Leader election with a Lease (coordination.k8s.io/v1) as a pure state machine without IO, clock
// or entropy. The rules are client-go's (leaderelection).
//
// The times in the record are not trusted, since clocks differ: a candidate takes over once the
// record has not changed for a whole lease duration by its own clock. The leader renews every retry
// period and gives up if no renewal succeeds for the renew deadline, which ends before another
// candidate can take over. A lease does not fence: a paused leader may still have a write in
// flight. So writes must be safe with two leaders (deterministic names, resourceVersions), and a
// leader checks may_write() before each.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/philox.h"
#include "base/result.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

// lease > renew > 1.2 * retry.
struct LeaseTimes {
  std::chrono::milliseconds lease{15'000};
  std::chrono::milliseconds renew{10'000};
  std::chrono::milliseconds retry{2'000};
};

struct LeaseTerms {
  ObjectKey key;
  std::string identity;  // of this candidate; unique
  LeaseTimes times;
};

// Monotonic time, and the wall clock for people who read the Lease.
struct LeaseNow {
  std::chrono::milliseconds steady{0};
  std::int64_t unix_ms = 0;
};

struct LeaseState {
  enum class Phase { kCandidate, kLeader, kLost, kReleased };
  Phase phase = Phase::kCandidate;
  Json record;                              // the Lease as last seen or written; null = none
  std::chrono::milliseconds seen_at{0};     // when this record was first seen
  std::chrono::milliseconds sent_at{0};     // when the request in flight was sent
  std::chrono::milliseconds renewed_at{0};  // when the last successful write was sent
  Random random{0};
};

// Inputs.
struct LeaseDue {};  // at the start, and when the wait is over
struct LeaseRead {
  Result<Json> lease;  // kNotFound: no Lease exists
};
struct LeaseWritten {
  Result<Json> lease;
};
using LeaseInput = std::variant<LeaseDue, LeaseRead, LeaseWritten>;

// The next action; one at a time.
struct ReadLease {};
struct CreateLease {
  Json lease;
};
struct UpdateLease {
  Json lease;  // with the resourceVersion at which it was read
};
struct WaitForLease {
  std::chrono::milliseconds time;
};
struct LeaseOver {};  // lost, or released
using LeaseOutput = std::variant<ReadLease, CreateLease, UpdateLease, WaitForLease, LeaseOver>;

struct LeaseStep {
  LeaseState state;
  LeaseOutput output;
};

LeaseStep step(const LeaseTerms& terms, LeaseState state, const LeaseInput& input, LeaseNow now);

// Returns the Lease without a holder, for a leader that shuts down: the next one need not wait.
Json released_lease(const LeaseState& state, LeaseNow now);

// Whether writes that need the lease may be sent now.
bool may_write(const LeaseTerms& terms, const LeaseState& state, std::chrono::milliseconds steady);

// Returns the identity that holds the lease as last seen; "" = none.
std::string holder_of(const LeaseState& state);

}  // namespace fettle::kube
