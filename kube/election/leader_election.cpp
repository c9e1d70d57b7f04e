#include "kube/election/leader_election.h"

#include <algorithm>
#include <utility>

#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;
using Phase = LeaseState::Phase;

constexpr double kJitter = 1.2;  // a candidate waits retry * (1 .. 1 + kJitter)

// Rounds up: with a shorter published duration another candidate could take over too early.
std::int64_t in_seconds(milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time).count();
}

std::string holder_in(const Json& lease) { return text_at(lease, {"spec", "holderIdentity"}); }

// One transition; each function returns the next action.
class Stepper {
 public:
  Stepper(const LeaseTerms& terms, LeaseState& state, LeaseNow now)
      : terms_(terms), state_(state), now_(now) {}

  LeaseOutput operator()(const LeaseDue&) {
    switch (state_.phase) {
      case Phase::kLost:
      case Phase::kReleased:
        return LeaseOver{};
      case Phase::kCandidate:
        return read();
      case Phase::kLeader:
        return is_expired() ? lose() : write();
    }
    return LeaseOver{};
  }

  LeaseOutput operator()(const LeaseRead& answer) {
    if (!answer.lease.ok()) {
      if (answer.lease.error().code != ErrorCode::kNotFound) return retry();
      state_.record = Json();  // null: write() creates the lease
      return write();
    }
    observe(*answer.lease);
    const std::string holder = holder_in(state_.record);
    // Its own name: an earlier write went through, although its answer was lost or was an error.
    if (holder.empty() || holder == terms_.identity) return write();
    if (state_.phase == Phase::kLeader) return lose();  // another process has taken it over
    return now_.steady < state_.seen_at + term_of_holder() ? retry() : write();
  }

  LeaseOutput operator()(const LeaseWritten& answer) {
    if (answer.lease.ok()) {
      state_.record = *answer.lease;
      state_.seen_at = now_.steady;
      // From the time of sending, not of the answer: others count from when they saw it, which is
      // later.
      state_.renewed_at = state_.sent_at;
      state_.phase = Phase::kLeader;
      return retry();
    }
    // A conflict: another process wrote, or this one did by a write whose answer was lost. The
    // leader reads at once to find out, because waiting could cost it the lease.
    const bool reread = state_.phase == Phase::kLeader &&
                        answer.lease.error().code == ErrorCode::kConflict && !is_expired();
    return reread ? read() : retry();
  }

 private:
  bool is_expired() const { return now_.steady - state_.renewed_at >= terms_.times.renew; }

  LeaseOutput read() { return ReadLease{}; }

  LeaseOutput lose() {
    state_.phase = Phase::kLost;
    return LeaseOver{};
  }

  LeaseOutput retry() {
    if (state_.phase == Phase::kLeader) {
      if (is_expired()) return lose();
      const milliseconds left = state_.renewed_at + terms_.times.renew - now_.steady;
      // Ends at the renew deadline at the latest, so that the loss is noticed at once.
      return WaitForLease{std::min(terms_.times.retry, left)};
    }
    const double factor = 1 + kJitter * state_.random.uniform();
    const double wait = static_cast<double>(terms_.times.retry.count()) * factor;
    return WaitForLease{milliseconds(static_cast<std::int64_t>(wait))};
  }

  void observe(const Json& lease) {
    if (lease == state_.record) return;
    state_.record = lease;
    state_.seen_at = now_.steady;
  }

  milliseconds term_of_holder() const {
    const std::int64_t seconds = integer_at(state_.record, {"spec", "leaseDurationSeconds"});
    return seconds > 0 ? std::chrono::seconds(seconds) : terms_.times.lease;
  }

  LeaseOutput write() {
    state_.sent_at = now_.steady;
    const bool fresh = state_.record.is_null();
    const bool ours = !fresh && holder_in(state_.record) == terms_.identity;
    const std::string now = format_micro_time(now_.unix_ms);
    // The record carries its resourceVersion: the write fails if another process wrote since.
    Json lease = fresh ? new_lease() : state_.record;
    Json spec = fresh || lease.find("spec") == nullptr ? Json::object() : *lease.find("spec");
    const std::int64_t transitions = integer_at(spec, {"leaseTransitions"});
    spec.set("holderIdentity", terms_.identity);
    spec.set("leaseDurationSeconds", in_seconds(terms_.times.lease));
    spec.set("renewTime", now);
    if (!ours) spec.set("acquireTime", now);
    // Counts the changes of holder.
    spec.set("leaseTransitions", ours || fresh ? transitions : transitions + 1);
    lease.set("spec", std::move(spec));
    if (fresh) return CreateLease{std::move(lease)};
    return UpdateLease{std::move(lease)};
  }

  Json new_lease() const {
    return Json::object(
        {{"apiVersion", api_version(kLeases)},
         {"kind", kLeases.kind},
         {"metadata", Json::object({{"name", terms_.key.name}, {"namespace", terms_.key.ns}})}});
  }

  const LeaseTerms& terms_;
  LeaseState& state_;
  const LeaseNow now_;
};

}  // namespace

LeaseStep step(const LeaseTerms& terms, LeaseState state, const LeaseInput& input, LeaseNow now) {
  LeaseOutput output = std::visit(Stepper(terms, state, now), input);
  return {std::move(state), std::move(output)};
}

Json released_lease(const LeaseState& state, LeaseNow now) {
  Json lease = state.record;
  const Json* old = lease.find("spec");
  Json spec = old == nullptr ? Json::object() : *old;
  spec.set("holderIdentity", "");
  spec.set("leaseDurationSeconds", 1);  // the least that the API allows, as in client-go
  spec.set("renewTime", format_micro_time(now.unix_ms));
  lease.set("spec", std::move(spec));
  return lease;
}

bool may_write(const LeaseTerms& terms, const LeaseState& state, milliseconds steady) {
  return state.phase == Phase::kLeader && steady - state.renewed_at < terms.times.renew;
}

std::string holder_of(const LeaseState& state) { return holder_in(state.record); }

}  // namespace fettle::kube
