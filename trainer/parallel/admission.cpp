#include "trainer/parallel/admission.h"

#include <algorithm>
#include <utility>

#include "trainer/parallel/membership_words.h"

namespace fettle::trainer {
namespace {

// Connections that have not identified themselves yet; further ones have to wait.
constexpr std::size_t kMostUnknownPeers = 64;
// A worker greets as soon as it is connected. If no further peer fits, peers that have been silent
// for longer than this are disconnected.
constexpr auto kSilence = std::chrono::seconds(1);

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

}  // namespace

Status Admission::gather() {
  const Deadline deadline = end_of_meeting(request_);
  const Deadline began = std::chrono::steady_clock::now();
  while (std::ssize(group_.members) + 1 < group_.world_size) {
    if (request_.should_stop && request_.should_stop()) return stopped();
    if (std::chrono::steady_clock::now() >= deadline) return give_up();
    report_missing(began);
    std::vector<pollfd> polled = {{listener_->fd(), POLLIN, 0}};
    for (const UnknownPeer& peer : unknown_peers_) {
      polled.push_back({peer.connection.fd(), POLLIN, 0});
    }
    for (const Member& member : group_.members)
      polled.push_back({member.connection.fd(), POLLIN, 0});
    wait_for_any(std::move(polled), std::min(deadline, in(kGlance)));
    read_greetings();
    drop_gone(group_.members);
    admit_replacements();
  }
  std::ranges::sort(group_.members, {}, &Member::rank);
  group_.gathering = false;
  // "": no rank is missing any more.
  if (!reported_.empty() && request_.waits_for) request_.waits_for("");
  if (request_.open) return success();  // the listener stays open for later workers
  listener_.reset();
  unknown_peers_.clear();
  return success();
}

void Admission::read_greetings() {
  std::erase_if(unknown_peers_, [this](UnknownPeer& peer) { return is_settled(peer); });
  make_room();
  while (unknown_peers_.size() < kMostUnknownPeers) {
    std::optional<Connection> came = listener_->accept();
    if (!came) break;
    unknown_peers_.push_back({*std::move(came), std::chrono::steady_clock::now()});
    // Its greeting may have arrived with the connection.
    if (is_settled(unknown_peers_.back())) unknown_peers_.pop_back();
  }
}

// Silent connections must not keep the workers out: any program that reaches the port can open
// many.
void Admission::make_room() {
  if (unknown_peers_.size() < kMostUnknownPeers) return;
  const Deadline now = std::chrono::steady_clock::now();
  const auto sent_away = std::erase_if(
      unknown_peers_, [now](const UnknownPeer& peer) { return now - peer.since > kSilence; });
  if (sent_away > 0) {
    request_.log("sent " + std::to_string(sent_away) +
                 " connections away that had not said which worker they are");
  }
}

void Admission::admit_waiting() {
  std::erase_if(waiting_, [this](Member& member) {
    if (group_.has(member.name)) return false;  // the member it replaces is not known to have gone
    group_.members.push_back(std::move(member));
    return true;
  });
}

bool Admission::somebody_waits() {
  if (!listener_) return false;
  read_greetings();
  drop_gone(waiting_);
  return std::ranges::any_of(waiting_,
                             [this](const Member& member) { return !group_.has(member.name); });
}

// Returns true once the peer is a member, was refused, or has failed to greet.
bool Admission::is_settled(UnknownPeer& peer) {
  const auto greeting = peer.connection.receive_now(kLongestGreeting);
  if (!greeting.ok()) return true;
  if (!*greeting) return std::chrono::steady_clock::now() >= peer.since + kGreetingTime;
  const Json said = object_in(**greeting);
  const std::string reason = reason_to_refuse(said, peer.connection.peer_host());
  if (reason.empty()) {
    const std::int64_t rank = number_of(said, "rank");
    admit({rank, /*name=*/rank, std::move(peer.connection)});
    return true;
  }
  request_.log("refused a worker at " + peer.connection.peer() + ": " + reason);
  (void)peer.connection.send(Json::object({{"refused", reason}}).dump(), in(kGreetingTime));
  return true;
}

// A worker that replaces another waits until the other one is known to have gone.
void Admission::admit(Member member) {
  const bool now = group_.gathering && member.rank < group_.world_size && !group_.has(member.name);
  (now ? group_.members : waiting_).push_back(std::move(member));
}

void Admission::admit_replacements() {
  drop_gone(waiting_);
  for (Member& member : std::exchange(waiting_, {})) admit(std::move(member));
}

// Returns "" for a worker that belongs. Details of the trial go only to workers with its token.
std::string Admission::reason_to_refuse(const Json& said, const std::string& host) const {
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
  if (const std::string data = text_of(said, "data"); !group_.gathering && data != request_.data) {
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
  // In an open world it waits instead, until that member is known to have gone (admit()).
  for (const Member& member : group_.members) {
    if (member.name == rank && !request_.open) {
      return "rank " + std::to_string(rank) + " is here already, from " + member.connection.peer();
    }
  }
  return "";
}

// Drops members that have left; a worker that is restarted joins again.
void Admission::drop_gone(std::vector<Member>& members) {
  std::erase_if(members, [this](Member& member) {
    const auto heard = member.connection.receive_now(kLongestGreeting);
    if (heard.ok() && !*heard) return false;  // connected, and silent as it should be
    request_.log("rank " + std::to_string(member.name) + " left before it was needed");
    return true;
  });
}

// "2, 3": at rank 0, during the meeting.
std::string Admission::missing_ranks() const {
  std::string ranks;
  for (std::int64_t rank = 1; rank < group_.world_size; ++rank) {
    const auto came = std::ranges::any_of(
        group_.members, [rank](const Member& member) { return member.rank == rank; });
    if (!came) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return ranks;
}

void Admission::report_missing(Deadline since) {
  if (std::chrono::steady_clock::now() < since + request_.quiet) return;
  const std::string words =
      "waits for rank " + missing_ranks() + " of " + std::to_string(group_.world_size) + " at " +
      to_string(request_.master) + " (is it running, and may it connect to this port?)";
  if (std::exchange(reported_, words) == words) return;
  request_.log(words);
  if (request_.waits_for) request_.waits_for(words);
}

Status Admission::give_up() {
  const std::string reason = "rank " + missing_ranks() + " of " +
                             std::to_string(group_.world_size) + " did not come within " +
                             seconds_text(meeting_time(request_));
  group_.end(reason);  // the members that are here learn it
  return missing(reason);
}

}  // namespace fettle::trainer
