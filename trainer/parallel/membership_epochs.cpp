// Transitions between epochs of a membership: explains losses, excludes unreachable workers and
// admits new ones.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/parallel/membership.h"
#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {

Error Membership::explain_loss(const CollectiveFailure& failure) {
  if (rank_ != 0) {
    Json failed = Json::object({{kFailedWord, failure.name}});
    if (failure.late) failed.set(kLateWord, true);
    if (failure.unreachable) failed.set(kUnreachableWord, *failure.unreachable);
    if (!failure.mismatch.empty()) failed.set(kMismatchWord, failure.mismatch);
    return hear_lost(failed).in(failure.name);
  }
  return losses_.collect(failure);
}

// Reports `word` to rank 0, and returns its verdict.
Error Membership::hear_lost(const Json& word) {
  Connection& master = group_.members[0].connection;
  // Rank 0 may still be computing, and then waits for the others.
  const Deadline deadline = in(2 * request_.timeout + kLateGrace);
  Status sent = master.send(word.dump(), deadline);
  if (!sent.ok()) return missing("rank 0 is gone, its connection was cut");
  auto verdict = hear(master, kLongestAnswer, deadline, last_wait_);
  // Before the verdict rank 0 tells all members that the collective has failed.
  if (verdict.ok() && object_in(*verdict).find(kBreakWord) != nullptr) {
    verdict = hear(master, kLongestAnswer, deadline, last_wait_);
  }
  if (!verdict.ok()) {
    const bool silent = std::chrono::steady_clock::now() >= last_wait_.limit(deadline);
    return missing(silent ? "rank 0 did not take part in time"
                          : "rank 0 is gone, its connection was cut");
  }
  const Json said = object_in(*verdict);
  const bool mismatch = said.find(kMismatchWord) != nullptr;
  return {mismatch ? ErrorCode::kConflict : ErrorCode::kUnavailable, text_of(said, "lost")};
}

Status Membership::form_next_epoch(const NextEpoch& next) {
  ++epoch_;
  if (rank_ != 0) {
    const Json intent = Json::object({{"leaves", next.leaves}});
    Status sent = group_.members[0].connection.send(intent.dump(), in(request_.timeout));
    if (!sent.ok()) return missing("rank 0 is gone, its connection was cut");
    return next.leaves ? success() : hear_welcome(in(2 * request_.timeout));
  }
  const std::vector<std::int64_t> before = std::exchange(met_, {});  // refilled by welcome_all()
  hear_intents();
  admission_->admit_waiting();
  // After a step, or with other members, training may succeed where it failed before.
  losses_.end_epoch(/*progress=*/next.progress || before != group_.names());
  FETTLE_TRY(leave_out_unreachable());
  group_.world_size = std::ssize(group_.members) + 1;
  if (group_.world_size < next.least) {
    const std::string reason = std::to_string(group_.world_size) + " of at least " +
                               std::to_string(next.least) + " workers are left";
    group_.end(reason);
    return missing(reason);
  }
  std::int64_t rank = 0;
  for (Member& member : group_.members) member.rank = ++rank;
  welcome_all();
  return success();
}

// Keeps members that announce to stay.
void Membership::hear_intents() {
  const Deadline deadline = in(request_.timeout);
  std::erase_if(group_.members, [this, deadline](Member& member) {
    const auto intent = hear(member.connection, kLongestAnswer, deadline, last_wait_);
    return !intent.ok() || object_in(*intent).find("leaves") == nullptr ||
           *object_in(*intent).find("leaves") == Json(true);
  });
}

// Errors: the workers cannot work together, but none can be excluded.
Status Membership::leave_out_unreachable() {
  const auto excluded = losses_.excluded();
  if (!excluded.ok()) {
    group_.end(excluded.error().message);
    return excluded.error();
  }
  if (!*excluded) return success();
  const auto& [name, reason] = **excluded;
  request_.log("leaves out rank " + std::to_string(name) + ": " + reason);
  std::erase_if(group_.members, [&](Member& member) {
    if (member.name != name) return false;
    admission_->leave_out(name, member.connection.peer_host(), reason);
    const Json word = Json::object({{"ended", "this worker is left out: " + reason}});
    (void)member.connection.send(word.dump(), in(kGreetingTime));
    return true;
  });
  return success();
}

}  // namespace fettle::trainer
