#include "trainer/parallel/membership.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {
namespace {

constexpr std::size_t kLongestGreeting = 4 << 10;
constexpr std::size_t kLongestContribution = 1 << 20;
const std::string kContribution = "=";  // begins a forwarded contribution, never a JSON frame
// Connections that have not identified themselves yet; further ones have to wait.
constexpr std::size_t kMostStrangers = 64;
// A worker greets as soon as it is connected. If no further stranger fits, strangers that have been
// silent for longer than this are disconnected.
constexpr auto kSilence = std::chrono::seconds(1);
// Interval at which a worker that waits for the others checks whether it should stop.
constexpr auto kGlance = std::chrono::milliseconds(200);
// One attempt to reach rank 0, whose name may not resolve yet, and the pause after it.
constexpr auto kTryTime = std::chrono::seconds(2);
constexpr auto kTryPause = std::chrono::seconds(1);
constexpr auto kSayAgain = std::chrono::minutes(5);  // that rank 0 cannot be found

Error stopped() { return missing("it was to stop before all workers were there"); }

std::string seconds(std::chrono::milliseconds time) {
  return Json(static_cast<double>(time.count()) / 1000).dump() + " s";
}

// Compares in constant time: a nearly right token takes as long as a wrong one.
bool same_token(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

// Returns "" if they are equal.
std::string difference_of_tokens(const std::string& theirs, const std::string& ours) {
  if (same_token(theirs, ours)) return "";
  if (theirs.empty()) return "it has no token; set FETTLE_RENDEZVOUS_TOKEN as rank 0 has it";
  return ours.empty() ? "it has a token, and rank 0 has none" : "it has another token";
}

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

// Waits until one of them is readable, or the deadline.
void wait_for_any(std::vector<pollfd>& polled, Deadline deadline) {
  ::poll(polled.data(), polled.size(), milliseconds_until(deadline));
}

}  // namespace

Sign sign_of(int connection) {
  // The length, and enough of the frame to tell the words apart: `{"failed` and `{"break`.
  char buffer[kLengthBytes + 8];
  const ssize_t got = ::recv(connection, buffer, sizeof buffer, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Sign::kNothing : Sign::kTrouble;
  if (got == 0) return Sign::kTrouble;
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
      world_size_(request.world_size),
      last_wait_(request.termination) {}

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
  made->listener_.emplace(std::move(listener));
  FETTLE_TRY(made->gather_members());
  made->welcome_all();
  return made;
}

// Unlimited if the meeting is. `grace`: time added to the meeting's.
Deadline Membership::end_of_gathering(std::chrono::milliseconds grace) const {
  return request_.patient ? Deadline::max() : in(meeting_time() + grace);
}

Result<Connection> Membership::reach_master() const {
  const Deadline deadline = end_of_gathering(/*grace=*/{});
  Deadline speaks = in(request_.quiet);
  for (;;) {
    auto connected = Connection::open(request_.master, std::min(deadline, in(kTryTime)));
    if (connected.ok()) return connected;
    if (is_to_stop()) return stopped();
    if (std::chrono::steady_clock::now() >= speaks) {
      request_.log("waits for rank 0: " + connected.error().message);
      speaks = in(kSayAgain);
    }
    if (in(kGlance) >= deadline) {  // no time for another attempt, however short the pause
      return missing("rank 0 was not to be found within " + seconds(meeting_time()) + ": " +
                     connected.error().message);
    }
    std::this_thread::sleep_until(std::min(deadline, in(kTryPause)));
  }
}

Status Membership::knock() {
  FETTLE_ASSIGN(Connection connected, reach_master());
  members_.push_back({0, 0, std::move(connected)});
  FETTLE_TRY(members_[0].connection.send(greeting_of(request_), in(request_.timeout)));
  // Rank 0 gives up, and says so, no later than this worker.
  FETTLE_TRY(hear_welcome(end_of_gathering(kGreetingTime)));
  gathering_ = false;
  return success();
}

// Waits for a frame that may take long.
Result<std::string> Membership::await_frame(Connection& from, Deadline deadline) const {
  for (;;) {
    FETTLE_ASSIGN(std::optional<std::string> frame, from.receive_now(kLongestAnswer));
    if (frame) return *std::move(frame);
    if (is_to_stop()) return stopped();
    if (std::chrono::steady_clock::now() >= deadline) return missing("no answer");
    std::vector<pollfd> polled = {{from.fd(), POLLIN, 0}};
    wait_for_any(polled, std::min(deadline, in(kGlance)));
  }
}

// As Connection::receive(), but only within this process's patience once it was asked to end.
Result<std::string> Membership::hear(Connection& from, std::size_t most, Deadline deadline) {
  for (;;) {
    FETTLE_ASSIGN(std::optional<std::string> frame, from.receive_now(most));
    if (frame) return *std::move(frame);
    deadline = last_wait_.limit(deadline);
    if (std::chrono::steady_clock::now() >= deadline) return missing("no answer");
    std::vector<pollfd> polled = {{from.fd(), POLLIN, 0}};
    wait_for_any(polled, std::min(deadline, in(kGlance)));
  }
}

Status Membership::hear_welcome(Deadline deadline) {
  Connection& master = members_[0].connection;
  const auto frame = await_frame(master, deadline);
  if (!frame.ok()) return missing("rank 0 is gone: " + frame.error().message);
  const Json answer = object_in(*frame);
  if (const std::string refusal = text_of(answer, "refused"); !refusal.empty()) {
    return invalid("rank 0 refuses this worker: " + refusal);
  }
  if (const std::string end = text_of(answer, "ended"); !end.empty()) return missing(end);
  // In welcome_all()'s order: rank and world size, then the id in a separate frame.
  rank_ = number_of(answer, "rank");
  world_size_ = number_of(answer, "world");
  if (rank_ < 1 || rank_ >= world_size_) return invalid("no rank 0 answers there: " + *frame);
  FETTLE_ASSIGN(shared_id_, hear(master, kSharedIdBytes, in(request_.timeout)));
  return success();
}

Status Membership::gather_members() {
  const Deadline deadline = end_of_gathering(/*grace=*/{});
  const Deadline began = std::chrono::steady_clock::now();
  while (std::ssize(members_) + 1 < world_size_) {
    if (is_to_stop()) return stopped();
    if (std::chrono::steady_clock::now() >= deadline) return give_up_waiting();
    say_whom_it_waits_for(began);
    std::vector<pollfd> polled = {{listener_->fd(), POLLIN, 0}};
    for (const Stranger& stranger : strangers_) {
      polled.push_back({stranger.connection.fd(), POLLIN, 0});
    }
    for (const Member& member : members_) polled.push_back({member.connection.fd(), POLLIN, 0});
    wait_for_any(polled, std::min(deadline, in(kGlance)));
    look_at_strangers();
    forget_those_that_left(members_);
    seat_replacements();
  }
  std::ranges::sort(members_, {}, &Member::rank);
  gathering_ = false;
  if (!waited_for_.empty() && request_.waits_for) request_.waits_for("");
  if (request_.open) return success();  // the listener stays open for later workers
  listener_.reset();
  strangers_.clear();
  return success();
}

void Membership::look_at_strangers() {
  std::erase_if(strangers_, [this](Stranger& stranger) { return is_settled(stranger); });
  make_room_for_strangers();
  while (strangers_.size() < kMostStrangers) {
    std::optional<Connection> came = listener_->accept();
    if (!came) break;
    strangers_.push_back({*std::move(came), std::chrono::steady_clock::now()});
    if (is_settled(strangers_.back())) strangers_.pop_back();
  }
}

// Silent connections must not keep the workers out: any program that reaches the port can open
// many.
void Membership::make_room_for_strangers() {
  if (strangers_.size() < kMostStrangers) return;
  const Deadline now = std::chrono::steady_clock::now();
  const auto sent_away = std::erase_if(
      strangers_, [now](const Stranger& stranger) { return now - stranger.since > kSilence; });
  if (sent_away > 0) {
    request_.log("sent " + std::to_string(sent_away) +
                 " connections away that had not said which worker they are");
  }
}

bool Membership::somebody_waits() {
  if (!listener_) return false;
  look_at_strangers();
  forget_those_that_left(waiting_);
  return std::ranges::any_of(waiting_,
                             [this](const Member& member) { return !is_seated(member.name); });
}

// Returns true once the stranger is a member, was refused, or has failed to greet.
bool Membership::is_settled(Stranger& stranger) {
  const auto greeting = stranger.connection.receive_now(kLongestGreeting);
  if (!greeting.ok()) return true;
  if (!*greeting) return std::chrono::steady_clock::now() >= stranger.since + kGreetingTime;
  const Json said = object_in(**greeting);
  const std::string reason = reason_to_refuse(said, stranger.connection.peer_host());
  if (reason.empty()) {
    const std::int64_t rank = number_of(said, "rank");
    seat({rank, /*name=*/rank, std::move(stranger.connection)});
    return true;
  }
  request_.log("refused a worker at " + stranger.connection.peer() + ": " + reason);
  (void)stranger.connection.send(Json::object({{"refused", reason}}).dump(), in(kGreetingTime));
  return true;
}

// A worker that replaces another waits until the other one is known to have gone.
void Membership::seat(Member member) {
  const bool now = gathering_ && member.rank < world_size_ && !is_seated(member.name);
  (now ? members_ : waiting_).push_back(std::move(member));
}

void Membership::seat_replacements() {
  forget_those_that_left(waiting_);
  for (Member& member : std::exchange(waiting_, {})) seat(std::move(member));
}

bool Membership::is_seated(std::int64_t name) const {
  return std::ranges::any_of(members_, [name](const Member& other) { return other.name == name; });
}

// Returns "" for a worker that belongs. Details of the trial go only to workers with its token.
std::string Membership::reason_to_refuse(const Json& said, const std::string& host) const {
  const std::string trial = text_of(said, "trial");
  const std::int64_t rank = number_of(said, "rank");
  const std::int64_t world_size = number_of(said, "world");
  if (std::string other = difference_of_tokens(text_of(said, "token"), request_.token);
      !other.empty()) {
    return other;
  }
  // Without a token any client can read this answer, so it names nothing of this trial.
  if (trial != request_.trial) {
    return "it comes from trial " + trial +
           (request_.token.empty() ? ", this is another one" : ", this is trial " + request_.trial);
  }
  if (const std::int64_t run = number_of(said, "run"); run != request_.run) {
    return "it comes from run " + std::to_string(run) + ", this is run " +
           std::to_string(request_.run);
  }
  if (world_size != request_.world_size) {
    return "it expects " + std::to_string(world_size) + " workers, here are to be " +
           std::to_string(request_.world_size);
  }
  // In the first meeting all workers compare more, and end together (Training::agree_on_data).
  if (const std::string data = text_of(said, "data"); !gathering_ && data != request_.data) {
    return "it reads other data (content " + data + ") than those that train (" + request_.data +
           ")";
  }
  // In an open world later workers have ranks behind the initial ones.
  if (rank < 1 || (rank >= world_size && !request_.open)) {
    return "it is rank " + std::to_string(rank) + ", expected 1 to " +
           std::to_string(world_size - 1);
  }
  // From another host the same rank may be reachable. A worker's name is the rank with which it
  // joined; it stays when ranks change.
  for (const LeftOut& one : left_out_) {
    if (one.name == rank && one.host == host) return one.reason;
  }
  for (const Member& member : members_) {
    if (member.name == rank && !request_.open) {
      return "rank " + std::to_string(rank) + " is here already, from " + member.connection.peer();
    }
  }
  return "";
}

// Drops members that have left; a worker that is restarted joins again.
void Membership::forget_those_that_left(std::vector<Member>& members) {
  std::erase_if(members, [this](Member& member) {
    const auto heard = member.connection.receive_now(kLongestGreeting);
    if (heard.ok() && !*heard) return false;
    request_.log("rank " + std::to_string(member.name) + " left before it was needed");
    return true;
  });
}

// "2, 3": at rank 0, during the meeting.
std::string Membership::missing_ranks() const {
  std::string ranks;
  for (std::int64_t rank = 1; rank < world_size_; ++rank) {
    const auto came =
        std::ranges::any_of(members_, [rank](const Member& member) { return member.rank == rank; });
    if (!came) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return ranks;
}

void Membership::say_whom_it_waits_for(Deadline since) {
  if (std::chrono::steady_clock::now() < since + request_.quiet) return;
  const std::string words = "waits for rank " + missing_ranks() + " of " +
                            std::to_string(world_size_) + " at " + to_string(request_.master) +
                            " (is it running, and may it connect to this port?)";
  if (std::exchange(waited_for_, words) == words) return;
  request_.log(words);
  if (request_.waits_for) request_.waits_for(words);
}

Status Membership::give_up_waiting() {
  const std::string reason = "rank " + missing_ranks() + " of " + std::to_string(world_size_) +
                             " did not come within " + seconds(meeting_time());
  end_all(reason);
  return missing(reason);
}

void Membership::end_all(const std::string& reason) {
  for (Member& member : members_) {
    (void)member.connection.send(Json::object({{"ended", reason}}).dump(), in(kGreetingTime));
  }
}

void Membership::welcome_all() {
  shared_id_ = make_shared_id();
  met_ = names_of_members();
  for (Member& member : members_) {
    const Json welcome = Json::object({{"rank", member.rank}, {"world", world_size_}});
    // A worker that has gone fails the next joint operation.
    (void)member.connection.send(welcome.dump(), in(kGreetingTime));
    (void)member.connection.send(shared_id_, in(kGreetingTime));
  }
}

// ---- Joint work --------------------------------------------------------------------------------

std::string Membership::local_host() const {
  return members_.empty() ? request_.master.host : members_[0].connection.local_host();
}

std::vector<int> Membership::connections() const {
  std::vector<int> all;
  for (const Member& member : members_) all.push_back(member.connection.fd());
  return all;
}

Result<std::vector<std::string>> Membership::all_gather(const std::string& mine) {
  return rank_ == 0 ? gather_and_send(mine) : send_and_hear(mine);
}

// Rank 0 answers with all contributions or, if a worker was lost meanwhile, with a verdict.
Result<std::vector<std::string>> Membership::gather_and_send(const std::string& mine) {
  const Deadline deadline = in(request_.timeout);
  std::vector<std::string> all(static_cast<std::size_t>(world_size_));
  std::vector<Lost> lost;
  bool failed = false;
  all[0] = mine;
  for (Member& member : members_) {
    auto received = hear(member.connection, kLongestContribution, deadline);
    if (!received.ok()) {
      lost.push_back({member.rank, /*silent=*/std::chrono::steady_clock::now() >= deadline});
      continue;
    }
    // This worker missed another in the previous collective, and waits for the verdict.
    if (const Json word = object_in(*received); word.find(kFailedWord) != nullptr) {
      failed = true;
      take_report(member.rank, number_of(word, kUnreachableWord));
    }
    all[static_cast<std::size_t>(member.rank)] = *std::move(received);
  }
  if (failed || !lost.empty()) return missing("meeting: " + tell_lost(lost));
  for (Member& member : members_) {
    // If a worker is lost now, the members that try to reach it will notice.
    for (const std::string& one : all) (void)member.connection.send(kContribution + one, deadline);
  }
  return all;
}

Result<std::vector<std::string>> Membership::send_and_hear(const std::string& mine) {
  // Rank 0 may begin up to one time-out later, and then waits one time-out for the others.
  const Deadline deadline = in(2 * request_.timeout);
  Connection& master = members_[0].connection;
  std::vector<std::string> all(static_cast<std::size_t>(world_size_));
  Status sent = master.send(mine, deadline);
  if (!sent.ok()) return missing("meeting: rank 0 is gone, its connection was cut");
  for (std::string& one : all) {
    auto received = hear(master, kLongestContribution + kContribution.size(), deadline);
    // Rank 0 missed a worker in the previous collective: it takes `mine` for a sign of life, and
    // its verdict follows.
    if (received.ok() && object_in(*received).find(kBreakWord) != nullptr) {
      received = hear(master, kLongestAnswer, deadline);
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
