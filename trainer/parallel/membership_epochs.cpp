// Transitions between epochs of a membership: finds lost workers, excludes unreachable ones and
// seats new ones.
#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/parallel/membership.h"
#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {
namespace {

// Workers whose collective times out report it at about the same time.
constexpr auto kLateGrace = std::chrono::seconds(5);
constexpr auto kGlance = std::chrono::milliseconds(200);  // interval of checks for SIGTERM

}  // namespace

// ---- Losing workers ----------------------------------------------------------------------------

Error Membership::explain_loss(const CollectiveFailure& failure) {
  if (rank_ != 0) {
    Json failed = Json::object({{kFailedWord, failure.name}});
    if (failure.late) failed.set(kLateWord, true);
    if (failure.unreachable) failed.set(kUnreachableWord, *failure.unreachable);
    if (!failure.mismatch.empty()) failed.set(kMismatchWord, failure.mismatch);
    return hear_lost(failed).in(failure.name);
  }
  if (failure.unreachable) take_report(/*reporter=*/0, *failure.unreachable);
  mismatch_ = failure.mismatch;
  // If the time is up here, it soon is for the others, too. Otherwise they may still be computing,
  // and report only when they come to the collective.
  const auto wait = failure.late ? std::min<std::chrono::milliseconds>(kLateGrace, request_.timeout)
                                 : request_.timeout;
  const std::string word = Json::object({{kBreakWord, failure.name}}).dump();
  for (Member& member : members_) (void)member.connection.send(word, in(kGreetingTime));
  const std::vector<Lost> lost = find_lost(in(wait));
  const std::string mismatch = std::exchange(mismatch_, "");
  return Error{mismatch.empty() ? ErrorCode::kUnavailable : ErrorCode::kConflict,
               tell_lost(lost, mismatch)}
      .in(failure.name);
}

// The remaining members report; lost ones have disconnected, or stay silent until the deadline.
// Once a member reports a time-out, the others get only kLateGrace more.
std::vector<Membership::Lost> Membership::find_lost(Deadline deadline) {
  std::vector<Lost> lost;
  std::vector<Member*> unheard;
  for (Member& member : members_) unheard.push_back(&member);
  while (!unheard.empty()) {
    std::vector<pollfd> polled;
    for (const Member* member : unheard) polled.push_back({member->connection.fd(), POLLIN, 0});
    deadline = last_wait_.limit(deadline);
    const Deadline glance = std::min(deadline, in(kGlance));
    if (::poll(polled.data(), polled.size(), milliseconds_until(glance)) <= 0) {
      if (std::chrono::steady_clock::now() >= deadline) break;
      continue;
    }
    for (std::size_t i = polled.size(); i-- > 0;) {  // backwards: members are erased on the way
      if (polled[i].revents == 0) continue;
      const auto heard = hear(unheard[i]->connection, kLongestAnswer, deadline);
      if (!heard.ok()) {
        const bool silent = std::chrono::steady_clock::now() >= deadline;
        lost.push_back({unheard[i]->rank, silent});
      } else {
        const Json word = object_in(*heard);
        take_report(unheard[i]->rank, number_of(word, kUnreachableWord));
        if (mismatch_.empty()) mismatch_ = text_of(word, kMismatchWord);
        if (word.find(kLateWord) != nullptr) deadline = std::min(deadline, in(kLateGrace));
      }
      unheard.erase(unheard.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const Member* member : unheard) lost.push_back({member->rank, /*silent=*/true});
  std::ranges::sort(lost, {}, &Lost::rank);
  return lost;
}

// Removes lost members, sends the verdict to the remaining ones, and returns it. `mismatch`: the
// reason, if no single member is to blame.
std::string Membership::tell_lost(const std::vector<Lost>& lost, const std::string& mismatch) {
  std::string sentence;
  for (const Lost& one : lost) {
    sentence += (sentence.empty() ? "rank " : "; rank ") + std::to_string(one.rank) +
                (one.silent ? " did not take part in time" : " is gone, its connection was cut");
  }
  if (lost.empty()) sentence = "a connection between workers was cut, all are still there";
  if (!mismatch.empty()) sentence = mismatch;
  std::erase_if(members_, [&lost](const Member& member) {
    return std::ranges::any_of(lost,
                               [&member](const Lost& one) { return one.rank == member.rank; });
  });
  Json verdict = Json::object({{"lost", sentence}});
  if (!mismatch.empty()) verdict.set(kMismatchWord, true);
  const std::string words = verdict.dump();
  for (Member& member : members_) (void)member.connection.send(words, in(kGreetingTime));
  return sentence;
}

std::vector<std::int64_t> Membership::names_of_members() const {
  std::vector<std::int64_t> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

// Reports `word` to rank 0, and returns its verdict.
Error Membership::hear_lost(const Json& word) {
  Connection& master = members_[0].connection;
  // Rank 0 may still be computing, and then waits for the others.
  const Deadline deadline = in(2 * request_.timeout + kLateGrace);
  Status sent = master.send(word.dump(), deadline);
  if (!sent.ok()) return missing("rank 0 is gone, its connection was cut");
  auto verdict = hear(master, kLongestAnswer, deadline);
  // Before the verdict rank 0 tells all members that the collective has failed.
  if (verdict.ok() && object_in(*verdict).find(kBreakWord) != nullptr) {
    verdict = hear(master, kLongestAnswer, deadline);
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
    Status sent = members_[0].connection.send(intent.dump(), in(request_.timeout));
    if (!sent.ok()) return missing("rank 0 is gone, its connection was cut");
    return next.leaves ? success() : hear_welcome(in(2 * request_.timeout));
  }
  const std::vector<std::int64_t> before = std::exchange(met_, {});  // refilled by welcome_all()
  count_those_that_stay();
  // After a step, or with other members, training may succeed where it failed before.
  unreachable_.end_epoch(/*progress=*/next.progress || before != names_of_members());
  if (unreachable_.is_stuck()) FETTLE_TRY(leave_out_unreachable());
  world_size_ = std::ssize(members_) + 1;
  if (world_size_ < next.least) {
    const std::string reason = std::to_string(world_size_) + " of at least " +
                               std::to_string(next.least) + " workers are left";
    end_all(reason);
    return missing(reason);
  }
  std::int64_t rank = 0;
  for (Member& member : members_) member.rank = ++rank;
  welcome_all();
  return success();
}

// Keeps members that announce to stay, and adds workers that have joined meanwhile.
void Membership::count_those_that_stay() {
  const Deadline deadline = in(request_.timeout);
  std::erase_if(members_, [this, deadline](Member& member) {
    const auto intent = hear(member.connection, kLongestAnswer, deadline);
    return !intent.ok() || object_in(*intent).find("leaves") == nullptr ||
           *object_in(*intent).find("leaves") == Json(true);
  });
  std::erase_if(waiting_, [this](Member& member) {
    if (is_seated(member.name)) return false;  // the member it replaces is not known to have gone
    members_.push_back(std::move(member));
    return true;
  });
}

// ---- Workers that do not reach each other ------------------------------------------------------

// `unreachable`: a rank of this epoch; negative: no report.
void Membership::take_report(std::int64_t reporter, std::int64_t unreachable) {
  // Ranks change from epoch to epoch, names do not.
  const auto name_of = [this](std::int64_t rank) -> std::optional<std::int64_t> {
    if (rank == 0) return 0;
    const auto found = std::ranges::find(members_, rank, &Member::rank);
    return found == members_.end() ? std::nullopt : std::optional(found->name);
  };
  const auto from = name_of(reporter);
  const auto to = name_of(unreachable);
  if (from && to) unreachable_.report(*from, *to);
}

// Errors: no worker was reported, so none can be excluded.
Status Membership::leave_out_unreachable() {
  const auto pair = unreachable_.worst();
  if (!pair) {
    const std::string reason = "all workers are connected with rank 0, but " +
                               std::to_string(kMostFruitlessEpochs) +
                               " times in a row they could not make a step together";
    end_all(reason);
    return missing(reason);
  }
  // Excludes the higher one: the lower may be rank 0, without which no worker continues.
  leave_out(pair->higher, "rank " + std::to_string(pair->lower) + " and rank " +
                              std::to_string(pair->higher) + " did not reach each other " +
                              std::to_string(kMostFruitlessEpochs) + " times in a row");
  unreachable_ = {};
  return success();
}

void Membership::leave_out(std::int64_t name, const std::string& reason) {
  request_.log("leaves out rank " + std::to_string(name) + ": " + reason);
  std::erase_if(members_, [&](Member& member) {
    if (member.name != name) return false;
    left_out_.push_back({name, member.connection.peer_host(), reason});
    const Json word = Json::object({{"ended", "this worker is left out: " + reason}});
    (void)member.connection.send(word.dump(), in(kGreetingTime));
    return true;
  });
}

}  // namespace fettle::trainer
