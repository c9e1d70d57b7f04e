#include "trainer/parallel/loss_reports.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {

Error LossReports::collect(const CollectiveFailure& failure) {
  if (failure.unreachable) take(/*reporter=*/0, *failure.unreachable);
  mismatch_ = failure.mismatch;
  // If the time is up here, it soon is for the others, too. Otherwise they may still be computing,
  // and report only when they come to the collective.
  const auto wait = failure.late ? std::min<std::chrono::milliseconds>(kLateGrace, request_.timeout)
                                 : request_.timeout;
  group_.send(Json::object({{kBreakWord, failure.name}}).dump());
  const std::vector<Lost> lost = find_lost(in(wait));
  const std::string mismatch = std::exchange(mismatch_, "");
  return Error{mismatch.empty() ? ErrorCode::kUnavailable : ErrorCode::kConflict,
               tell(lost, mismatch)}
      .in(failure.name);
}

// The remaining members report; lost ones have disconnected, or stay silent until the deadline.
// Once a member reports a time-out, the others get only kLateGrace more.
std::vector<LossReports::Lost> LossReports::find_lost(Deadline deadline) {
  std::vector<Lost> lost;
  std::vector<Member*> unheard;
  for (Member& member : group_.members) unheard.push_back(&member);
  while (!unheard.empty()) {
    std::vector<pollfd> polled;
    for (const Member* member : unheard) polled.push_back({member->connection.fd(), POLLIN, 0});
    // A request to end this process shortens the deadline; a glance is how often it is looked for.
    deadline = last_wait_.limit(deadline);
    const Deadline glance = std::min(deadline, in(kGlance));
    if (::poll(polled.data(), polled.size(), milliseconds_until(glance)) <= 0) {
      if (std::chrono::steady_clock::now() >= deadline) break;
      continue;
    }
    for (std::size_t i = polled.size(); i-- > 0;) {  // backwards: members are erased on the way
      if (polled[i].revents == 0) continue;
      const auto heard = hear(unheard[i]->connection, kLongestAnswer, deadline, last_wait_);
      if (!heard.ok()) {
        const bool silent = std::chrono::steady_clock::now() >= deadline;
        lost.push_back({unheard[i]->rank, silent});
      } else {
        const Json word = object_in(*heard);
        take(unheard[i]->rank, number_of(word, kUnreachableWord));
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

std::string LossReports::tell(const std::vector<Lost>& lost, const std::string& mismatch) {
  std::string sentence;
  for (const Lost& one : lost) {
    sentence += (sentence.empty() ? "rank " : "; rank ") + std::to_string(one.rank) +
                (one.silent ? " did not take part in time" : " is gone, its connection was cut");
  }
  if (lost.empty()) sentence = "a connection between workers was cut, all are still there";
  if (!mismatch.empty()) sentence = mismatch;
  std::erase_if(group_.members, [&lost](const Member& member) {
    return std::ranges::any_of(lost,
                               [&member](const Lost& one) { return one.rank == member.rank; });
  });
  Json verdict = Json::object({{"lost", sentence}});
  if (!mismatch.empty()) verdict.set(kMismatchWord, true);
  group_.send(verdict.dump());
  return sentence;
}

void LossReports::take(std::int64_t reporter, std::int64_t unreachable) {
  // Ranks change from epoch to epoch, names do not.
  const auto name_of = [this](std::int64_t rank) -> std::optional<std::int64_t> {
    if (rank == 0) return 0;
    const auto found = std::ranges::find(group_.members, rank, &Member::rank);
    return found == group_.members.end() ? std::nullopt : std::optional(found->name);
  };
  const auto from = name_of(reporter);
  const auto to = name_of(unreachable);  // nullopt for -1: the reporter named no rank
  if (from && to) unreachable_.report(*from, *to);
}

Result<std::optional<LossReports::Excluded>> LossReports::excluded() {
  if (!unreachable_.is_stuck()) return std::optional<Excluded>();
  const auto pair = unreachable_.worst();
  const std::string times = std::to_string(kMostFruitlessEpochs) + " times in a row";
  if (!pair) {
    return missing("all workers are connected with rank 0, but " + times +
                   " they could not make a step together");
  }
  unreachable_ = {};
  // Excludes the higher one: the lower may be rank 0, without which no worker continues.
  return std::optional(Excluded{pair->higher, "rank " + std::to_string(pair->lower) + " and rank " +
                                                  std::to_string(pair->higher) +
                                                  " did not reach each other " + times});
}

}  // namespace fettle::trainer
