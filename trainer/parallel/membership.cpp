#include "trainer/parallel/membership.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {
namespace {

constexpr std::size_t kLongestContribution = 1 << 20;
const std::string kContribution = "=";  // begins a forwarded contribution, never a JSON frame
// One attempt to reach rank 0, whose name may not resolve yet, and the pause after it.
constexpr auto kTryTime = std::chrono::seconds(2);
constexpr auto kTryPause = std::chrono::seconds(1);
constexpr auto kSayAgain = std::chrono::minutes(5);  // that rank 0 cannot be found

std::string greeting_of(const RendezvousRequest& request) {
  return Json::object({{"trial", request.trial},
                       {"run", request.run},
                       {"token", request.token},
                       {"data", request.data},
                       {"rank", request.rank},
                       {"world", request.world_size}})
      .dump();
}

// Generates an id that differs from that of every other epoch of every trial.
std::string make_shared_id() {
  std::random_device entropy;
  std::string id(kSharedIdBytes, '\0');
  std::ranges::generate(id, [&entropy] { return static_cast<char>(entropy()); });
  return id;
}

Result<Connection> reach_master(const RendezvousRequest& request) {
  const Deadline deadline = end_of_meeting(request);
  Deadline speaks = in(request.quiet);
  for (;;) {
    auto connected = Connection::open(request.master, std::min(deadline, in(kTryTime)));
    if (connected.ok()) return connected;
    if (request.should_stop && request.should_stop()) return stopped();
    if (std::chrono::steady_clock::now() >= speaks) {
      request.log("waits for rank 0: " + connected.error().message);
      speaks = in(kSayAgain);
    }
    if (in(kGlance) >= deadline) {  // no time for another attempt, however short the pause
      return missing("rank 0 was not to be found within " + seconds_text(meeting_time(request)) +
                     ": " + connected.error().message);
    }
    std::this_thread::sleep_until(std::min(deadline, in(kTryPause)));
  }
}

// Waits for a frame that may take long. `should_stop`: may be empty.
Result<std::string> await_frame(Connection& from, Deadline deadline,
                                const std::function<bool()>& should_stop) {
  for (;;) {
    FETTLE_ASSIGN(std::optional<std::string> frame, from.receive_now(kLongestAnswer));
    if (frame) return *std::move(frame);
    if (should_stop && should_stop()) return stopped();
    if (std::chrono::steady_clock::now() >= deadline) return missing("no answer");
    wait_for_any({{from.fd(), POLLIN, 0}}, std::min(deadline, in(kGlance)));
  }
}

}  // namespace

Sign sign_of(int connection) {
  // The length, and enough of the frame to tell the words apart: `{"failed` and `{"break`.
  char buffer[kLengthBytes + 8];
  const ssize_t got = ::recv(connection, buffer, sizeof buffer, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Sign::kNothing : Sign::kTrouble;
  if (got == 0) return Sign::kTrouble;  // the other end has closed the connection
  const std::string_view bytes(buffer, static_cast<std::size_t>(got));
  if (bytes.size() < sizeof buffer) return Sign::kNothing;  // every message is longer
  const std::string_view said = bytes.substr(kLengthBytes);
  for (const char* word : {kFailedWord, kBreakWord}) {
    if (said.starts_with(std::string("{\"") + word)) return Sign::kTrouble;
  }
  return Sign::kGoneOn;
}

// ---- Meeting -----------------------------------------------------------------------------------

Membership::Membership(const RendezvousRequest& request)
    : request_(request),
      rank_(request.rank),
      group_{.world_size = request.world_size, .members = {}},
      last_wait_(request.termination),
      losses_(request_, group_, last_wait_) {}

Result<std::unique_ptr<Membership>> Membership::join(const RendezvousRequest& request) {
  if (request.rank == 0) {
    FETTLE_ASSIGN(Listener listener, Listener::open(request.master));
    return host(request, std::move(listener));
  }
  std::unique_ptr<Membership> made(new Membership(request));
  FETTLE_TRY(made->knock());
  return made;
}

Result<std::unique_ptr<Membership>> Membership::host(const RendezvousRequest& request,
                                                     Listener listener) {
  std::unique_ptr<Membership> made(new Membership(request));
  made->admission_.emplace(made->request_, made->group_, std::move(listener));
  FETTLE_TRY(made->admission_->gather());
  made->welcome_all();
  return made;
}

Status Membership::knock() {
  FETTLE_ASSIGN(Connection connected, reach_master(request_));
  group_.members.push_back({0, 0, std::move(connected)});
  FETTLE_TRY(group_.members[0].connection.send(greeting_of(request_), in(request_.timeout)));
  // Rank 0 gives up, and says so, no later than this worker.
  FETTLE_TRY(hear_welcome(end_of_meeting(request_, kGreetingTime)));
  group_.gathering = false;
  return success();
}

Status Membership::hear_welcome(Deadline deadline) {
  Connection& master = group_.members[0].connection;
  const bool first = group_.gathering;
  const auto frame = await_frame(master, deadline, first ? request_.should_stop : nullptr);
  if (!frame.ok()) return missing("rank 0 is gone: " + frame.error().message);
  const Json answer = object_in(*frame);
  if (const std::string refusal = text_of(answer, "refused"); !refusal.empty()) {
    return invalid("rank 0 refuses this worker: " + refusal);
  }
  if (const std::string end = text_of(answer, "ended"); !end.empty()) return missing(end);
  // In welcome_all()'s order: rank and world size, then the id in a separate frame.
  rank_ = number_of(answer, "rank");
  group_.world_size = number_of(answer, "world");
  if (rank_ < 1 || rank_ >= group_.world_size) return invalid("no rank 0 answers there: " + *frame);
  FETTLE_ASSIGN(shared_id_, hear(master, kSharedIdBytes, in(request_.timeout), last_wait_));
  return success();
}

void Membership::welcome_all() {
  shared_id_ = make_shared_id();
  met_ = group_.names();
  for (Member& member : group_.members) {
    const Json welcome = Json::object({{"rank", member.rank}, {"world", group_.world_size}});
    // A worker that has gone fails the next joint operation.
    (void)member.connection.send(welcome.dump(), in(kGreetingTime));
    (void)member.connection.send(shared_id_, in(kGreetingTime));
  }
}

bool Membership::somebody_waits() { return admission_ && admission_->somebody_waits(); }

// ---- Joint work --------------------------------------------------------------------------------

std::string Membership::local_host() const {
  return group_.members.empty() ? request_.master.host : group_.members[0].connection.local_host();
}

std::vector<int> Membership::connections() const {
  std::vector<int> all;
  for (const Member& member : group_.members) all.push_back(member.connection.fd());
  return all;
}

Result<std::vector<std::string>> Membership::all_gather(const std::string& mine) {
  return rank_ == 0 ? gather_and_send(mine) : send_and_hear(mine);
}

// Rank 0 answers with all contributions or, if a worker was lost meanwhile, with a verdict.
Result<std::vector<std::string>> Membership::gather_and_send(const std::string& mine) {
  const Deadline deadline = in(request_.timeout);
  std::vector<std::string> all(static_cast<std::size_t>(group_.world_size));
  std::vector<LossReports::Lost> lost;
  bool failed = false;
  all[0] = mine;
  for (Member& member : group_.members) {
    auto received = hear(member.connection, kLongestContribution, deadline, last_wait_);
    if (!received.ok()) {
      lost.push_back({member.rank, /*silent=*/std::chrono::steady_clock::now() >= deadline});
      continue;
    }
    // This worker missed another in the previous collective, and waits for the verdict.
    if (const Json word = object_in(*received); word.find(kFailedWord) != nullptr) {
      failed = true;
      losses_.take(member.rank, number_of(word, kUnreachableWord));
    }
    all[static_cast<std::size_t>(member.rank)] = *std::move(received);
  }
  // tell() sends the verdict to the remaining members, and drops lost members from the group.
  if (failed || !lost.empty()) return missing("meeting: " + losses_.tell(lost));
  for (Member& member : group_.members) {
    // If a worker is lost now, the members that try to reach it will notice.
    for (const std::string& one : all) (void)member.connection.send(kContribution + one, deadline);
  }
  return all;
}

Result<std::vector<std::string>> Membership::send_and_hear(const std::string& mine) {
  // Rank 0 may begin up to one time-out later, and then waits one time-out for the others.
  const Deadline deadline = in(2 * request_.timeout);
  Connection& master = group_.members[0].connection;
  std::vector<std::string> all(static_cast<std::size_t>(group_.world_size));
  Status sent = master.send(mine, deadline);
  if (!sent.ok()) return missing("meeting: rank 0 is gone, its connection was cut");
  for (std::string& one : all) {
    auto received = hear(master, kLongestContribution + kContribution.size(), deadline, last_wait_);
    // Rank 0 missed a worker in the previous collective: it takes `mine` for a sign of life, and
    // its verdict follows.
    if (received.ok() && object_in(*received).find(kBreakWord) != nullptr) {
      received = hear(master, kLongestAnswer, deadline, last_wait_);
    }
    if (!received.ok()) return missing("meeting: rank 0 is gone: " + received.error().message);
    if (!received->starts_with(kContribution)) {  // the verdict
      return missing("meeting: " + text_of(object_in(*received), "lost"));
    }
    one = received->substr(kContribution.size());
  }
  return all;
}

}  // namespace fettle::trainer
