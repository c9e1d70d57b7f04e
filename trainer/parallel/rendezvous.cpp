#include "trainer/parallel/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {

std::chrono::milliseconds meeting_time(const RendezvousRequest& request) {
  return request.meeting.value_or(request.timeout);
}

Deadline end_of_meeting(const RendezvousRequest& request, std::chrono::milliseconds grace) {
  return request.patient ? Deadline::max() : in(meeting_time(request) + grace);
}

bool Group::has(std::int64_t name) const {
  return std::ranges::any_of(members, [name](const Member& other) { return other.name == name; });
}

std::vector<std::int64_t> Group::names() const {
  std::vector<std::int64_t> names;
  for (const Member& member : members) names.push_back(member.name);
  return names;
}

void Group::send(const std::string& frame) {
  for (Member& member : members) (void)member.connection.send(frame, in(kGreetingTime));
}

void Group::end(const std::string& reason) { send(Json::object({{"ended", reason}}).dump()); }

Result<std::string> hear(Connection& from, std::size_t most, Deadline deadline,
                         LastWait& last_wait) {
  for (;;) {
    FETTLE_ASSIGN(std::optional<std::string> frame, from.receive_now(most));
    if (frame) return *std::move(frame);
    deadline = last_wait.limit(deadline);
    if (std::chrono::steady_clock::now() >= deadline) return missing("no answer");
    wait_for_any({{from.fd(), POLLIN, 0}}, std::min(deadline, in(kGlance)));
  }
}

}  // namespace fettle::trainer
