#include "trainer/parallel/ring_collective.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "trainer/data/batching.h"
#include "trainer/parallel/termination.h"

namespace fettle::trainer {
namespace {

// All members have just sent their addresses, so this limits only a member lost meanwhile.
constexpr auto kConnectTime = std::chrono::seconds(10);
// A finished neighbour may leave before this worker has read all it sent.
constexpr auto kShortWhile = std::chrono::milliseconds(200);
// Connections that have not identified themselves yet; the previous worker does so at once.
constexpr std::size_t kMostUnknownPeers = 64;
// Interval at which a worker that waits for a neighbour checks for a cut connection or SIGTERM.
constexpr auto kGlance = std::chrono::milliseconds(200);
constexpr std::size_t kBroadcastBytes = 1 << 20;  // forwarded at once

enum class CallKind : std::uint32_t { kSumOfFloats, kSumOfDoubles, kGathering, kBroadcast };

// Sent to the next worker before the first bytes of a call. A neighbour in another call would take
// these bytes for its own numbers.
struct CallHeader {
  std::uint64_t number = 0;  // of the call
  std::uint64_t bytes = 0;   // of all values
  std::uint64_t bounds = 0;  // a hash of an all-gather's bounds
  CallKind kind = CallKind::kSumOfFloats;
  std::uint32_t magic = 0x4C544546;
  bool operator==(const CallHeader&) const = default;
};
static_assert(sizeof(CallHeader) == 32, "without gaps: it is compared and sent as bytes");

std::string to_string(const CallHeader& header) {
  const auto name = [&header] {
    switch (header.kind) {
      case CallKind::kSumOfFloats:
        return "sum of floats";
      case CallKind::kSumOfDoubles:
        return "sum of doubles";
      case CallKind::kGathering:
        return "gathering";
      case CallKind::kBroadcast:
        return "broadcast";
    }
    return "something else";
  };
  return std::string(name()) + " of " + std::to_string(header.bytes) + " bytes (collective " +
         std::to_string(header.number) + ")";
}

// Bytes still to be sent to the next worker, and to be received from the previous one.
struct Transfer {
  int to = -1;
  std::span<const std::byte> out;
  int from = -1;
  std::span<std::byte> in;
  // These come first.
  std::span<const std::byte> header_out = {};
  std::span<std::byte> header_in = {};
  bool sends() const { return !header_out.empty() || !out.empty(); }
  bool receives() const { return !header_in.empty() || !in.empty(); }
};

// Returns false if the connection is unusable.
bool send_some(int to, std::span<const std::byte>& out, int flags = 0) {
  if (out.empty()) return true;
  const ssize_t sent = ::send(to, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT | flags);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  out = out.subspan(static_cast<std::size_t>(sent));
  return true;
}

bool send_some(Transfer& transfer) {
  const int more = transfer.out.empty() ? 0 : MSG_MORE;  // in one packet with the values
  if (!send_some(transfer.to, transfer.header_out, more)) return false;
  return !transfer.header_out.empty() || send_some(transfer.to, transfer.out);
}

bool receive_some(int from, std::span<std::byte>& in) {
  if (in.empty()) return true;
  const ssize_t got = ::recv(from, in.data(), in.size(), MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  in = in.subspan(static_cast<std::size_t>(got));
  return true;
}

// A connection that has not identified itself yet.
struct UnknownPeer {
  UnknownPeer(Connection from, std::size_t bytes)
      : connection(std::move(from)), greeting(bytes), missing(greeting) {}
  Connection connection;
  std::vector<std::byte> greeting;
  std::span<std::byte> missing;  // unread part of `greeting`; a move keeps those bytes in place
};

// Returns false if no connection waits. The connection that has been silent longest makes room.
bool accept_one(Listener& listener, std::size_t bytes, std::vector<UnknownPeer>& peers) {
  std::optional<Connection> came = listener.accept();
  if (!came) return false;
  if (peers.size() == kMostUnknownPeers) peers.erase(peers.begin());
  peers.emplace_back(*std::move(came), bytes);
  return true;
}

// Returns false if nothing has happened for a while, or by the deadline.
bool wait_for_neighbours(const Transfer& transfer, const std::vector<int>& watched,
                         Deadline deadline) {
  std::vector<pollfd> polled;
  if (transfer.sends()) polled.push_back({transfer.to, POLLOUT, 0});
  if (transfer.receives()) polled.push_back({transfer.from, POLLIN, 0});
  for (const int fd : watched) polled.push_back({fd, POLLIN, 0});
  return ::poll(polled.data(), polled.size(), milliseconds_until(std::min(deadline, in(kGlance)))) >
         0;
}

// Members that have finished the collective are no longer watched.
bool find_trouble(std::vector<int>& watched) {
  bool trouble = false;
  std::erase_if(watched, [&trouble](int connection) {
    const Sign sign = sign_of(connection);
    trouble = trouble || sign == Sign::kTrouble;
    return sign == Sign::kGoneOn;
  });
  return trouble;
}

// The piece with which worker `owner` begins.
template <class T>
std::span<T> piece_of(std::span<T> values, std::int64_t world_size, std::int64_t owner) {
  const Range range = share_of({0, std::ssize(values)}, world_size, owner);
  return values.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.size()));
}

// Greeting to the next worker: only members know the id.
std::string greeting_of(const std::string& shared_id, std::int64_t rank) {
  std::string greeting = shared_id;
  for (int shift = 0; shift < 64; shift += 8) {
    greeting += static_cast<char>(static_cast<std::uint64_t>(rank) >> shift & 255);
  }
  return greeting;
}

class RingCollective final : public Collective {
 public:
  RingCollective(Membership& membership, std::chrono::milliseconds timeout,
                 std::chrono::milliseconds unacknowledged)
      : membership_(membership),
        timeout_(timeout),
        unacknowledged_(unacknowledged),
        last_wait_(membership.termination()) {}

  Status connect() {
    const std::string host = membership_.local_host();
    FETTLE_ASSIGN(Listener listener, Listener::open({host, 0}));
    const std::string mine =
        Json::object({{"host", host}, {"port", static_cast<int>(listener.port())}}).dump();
    FETTLE_ASSIGN(const std::vector<std::string> all, membership_.all_gather(mine));
    const std::int64_t next = wrapped(rank() + 1);
    if (!reach_next(all)) return fail("meeting", /*late=*/false, /*unreachable=*/next);
    const std::int64_t previous = wrapped(rank() - 1);
    return await_previous(listener) ? success()
                                    : fail("meeting", /*late=*/false, /*unreachable=*/previous);
  }

  std::int64_t world_size() const override { return membership_.world_size(); }
  std::int64_t rank() const override { return membership_.rank(); }
  Status sum(std::span<float> values) override { return sum_of(values, CallKind::kSumOfFloats); }
  Status sum(std::span<double> values) override { return sum_of(values, CallKind::kSumOfDoubles); }

  Status all_gather(std::span<float> values, std::span<const std::int64_t> bounds) override {
    const auto piece = [&](std::int64_t owner) {
      const auto i = static_cast<std::size_t>(wrapped(owner));
      return values.subspan(static_cast<std::size_t>(bounds[i]),
                            static_cast<std::size_t>(bounds[i + 1] - bounds[i]));
    };
    const std::string name = "gathering of " + std::to_string(values.size()) + " values";
    CallHeader header{.bytes = values.size_bytes(), .kind = CallKind::kGathering};
    for (const std::int64_t bound : bounds) {
      header.bounds = mix_keys(header.bounds, static_cast<std::uint64_t>(bound));
    }
    return attempt(name, header, [&] { return hand_out(/*first=*/rank(), piece); });
  }

  // Rank 0 sends to the next worker, and so on; the last one forwards nothing.
  Status broadcast(std::span<std::byte> bytes) override {
    const std::string name = "broadcast of " + std::to_string(bytes.size()) + " bytes";
    const CallHeader header{.bytes = bytes.size(), .kind = CallKind::kBroadcast};
    return attempt(name, header, [&] {
      for (auto left = bytes; !left.empty();) {
        const auto piece = left.first(std::min(left.size(), kBroadcastBytes));
        if (rank() != 0 && !receive(piece)) return false;
        if (rank() != world_size() - 1 && !send(piece)) return false;
        left = left.subspan(piece.size());
      }
      return true;
    });
  }

 private:
  // ---- Meeting

  bool reach_next(const std::vector<std::string>& addresses) {
    const auto next = static_cast<std::size_t>((rank() + 1) % world_size());
    const Result<Json> address = parse_json(addresses[next]);
    const Json* const host = address.ok() ? address->find("host") : nullptr;
    const Json* const port = address.ok() ? address->find("port") : nullptr;
    if (host == nullptr || port == nullptr) return false;
    const Endpoint endpoint{host->as_string(), static_cast<std::uint16_t>(port->as_integer())};
    // A member listens before it sends its address, unless it is lost: one second is enough.
    auto connection = Connection::open(endpoint, in(std::chrono::seconds(1)));
    if (!connection.ok()) return false;
    next_.emplace(*std::move(connection));
    next_->allow_slow_reader();
    const std::string greeting = greeting_of(membership_.shared_id(), rank());
    return move({next_->fd(), std::as_bytes(std::span(greeting)), /*from=*/-1, /*in=*/{}},
                in(kConnectTime));
  }

  // Accepts connections until one begins with the greeting of the previous worker. Connections with
  // another greeting are closed; silent connections delay no other.
  bool await_previous(Listener& listener) {
    Deadline deadline = in(kConnectTime);
    const std::string expected = greeting_of(membership_.shared_id(), wrapped(rank() - 1));
    std::vector<int> watched = membership_.connections();
    std::vector<UnknownPeer> peers;
    while (std::chrono::steady_clock::now() < deadline) {
      const bool came = accept_one(listener, expected.size(), peers);
      if (find_greeting(expected, peers)) return true;
      if (came) continue;  // all waiting connections first: one may be the previous worker's
      if (find_trouble(watched)) {
        // The previous worker may have connected, greeted and left since the listener was polled,
        // or its greeting may be under way: it gets a short while. The members are no longer
        // watched.
        deadline = std::min(deadline, in(kShortWhile));
        watched.clear();
      }
      std::vector<pollfd> polled = {{listener.fd(), POLLIN, 0}};
      for (const UnknownPeer& one : peers) polled.push_back({one.connection.fd(), POLLIN, 0});
      for (const int fd : watched) polled.push_back({fd, POLLIN, 0});
      ::poll(polled.data(), polled.size(), milliseconds_until(deadline));
    }
    return false;
  }

  // Reads the bytes that have arrived. The connection with the greeting becomes previous_.
  bool find_greeting(const std::string& expected, std::vector<UnknownPeer>& peers) {
    std::erase_if(peers, [&](UnknownPeer& one) {
      if (!receive_some(one.connection.fd(), one.missing)) return true;
      if (!one.missing.empty()) return false;
      const auto greeting = std::as_bytes(std::span(expected));
      if (!std::ranges::equal(one.greeting, greeting)) return true;
      previous_.emplace(std::move(one.connection));
      previous_->allow_slow_reader();
      return true;  // the entry was moved from
    });
    return previous_.has_value();
  }

  // ---- Sums

  template <class T>
  Status sum_of(std::span<T> values, CallKind kind) {
    const std::string name = "sum of " + std::to_string(values.size()) + " values";
    const auto piece = [&](std::int64_t owner) {
      return piece_of(values, world_size(), wrapped(owner));
    };
    return attempt(name, {.bytes = values.size_bytes(), .kind = kind},
                   [&] { return reduce_scatter(values) && hand_out(/*first=*/rank() + 1, piece); });
  }

  // Maps any whole number to a rank on the ring: -1 is the last rank, world_size() is rank 0.
  std::int64_t wrapped(std::int64_t number) const {
    return (number % world_size() + world_size()) % world_size();
  }

  // In each step a worker sends the piece to which it has just added its own numbers. Afterwards
  // this worker has the whole sum of piece rank + 1, and partial sums of the others.
  template <class T>
  bool reduce_scatter(std::span<T> values) {
    std::vector<T> received;
    for (std::int64_t step = 0; step < world_size() - 1; ++step) {
      const std::span<T> sent = piece_of(values, world_size(), wrapped(rank() - step));
      const std::span<T> mine = piece_of(values, world_size(), wrapped(rank() - step - 1));
      received.resize(mine.size());
      if (!exchange(std::as_bytes(sent), std::as_writable_bytes(std::span(received)))) return false;
      for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += received[i];
    }
    return true;
  }

  // Before the call this worker has piece `first`, and the next worker the piece after it;
  // afterwards every worker has all pieces. `piece(i)`: the bytes of piece i, for any whole number.
  template <class Piece>
  bool hand_out(std::int64_t first, const Piece& piece) {
    for (std::int64_t step = 0; step < world_size() - 1; ++step) {
      const auto sent = piece(first - step);
      const auto received = piece(first - step - 1);
      if (!exchange(std::as_bytes(sent), std::as_writable_bytes(received))) return false;
    }
    return true;
  }

  // ---- Moving bytes

  bool exchange(std::span<const std::byte> out, std::span<std::byte> in) {
    Transfer transfer{next_->fd(), out, previous_->fd(), in};
    transfer.header_out = std::exchange(header_out_, {});
    transfer.header_in = std::exchange(header_in_, {});
    return move(transfer, deadline_);
  }
  bool send(std::span<const std::byte> out) {
    Transfer transfer{next_->fd(), out, /*from=*/-1, /*in=*/{}};
    transfer.header_out = std::exchange(header_out_, {});
    return move(transfer, deadline_);
  }
  bool receive(std::span<std::byte> in) {
    Transfer transfer{/*to=*/-1, /*out=*/{}, previous_->fd(), in};
    transfer.header_in = std::exchange(header_in_, {});
    return move(transfer, deadline_);
  }

  // Returns false also if the previous worker is in another call.
  bool receive_checked(Transfer& transfer) {
    if (!transfer.header_in.empty()) {
      if (!receive_some(transfer.from, transfer.header_in)) return false;
      if (!transfer.header_in.empty()) return true;
      if (heard_ != header_) {
        mismatch_ = "rank " + std::to_string(wrapped(rank() - 1)) + " is in a " +
                    to_string(heard_) + ", but rank " + std::to_string(rank()) + " in a " +
                    to_string(header_) +
                    "; the workers do different things: use one image for all of them";
        return false;
      }
    }
    return receive_some(transfer.from, transfer.in);
  }

  // Returns false if a connection was cut, a member is lost, or the time is up.
  bool move(Transfer transfer, Deadline deadline) {
    std::vector<int> watched = membership_.connections();
    CutWatch cut(unacknowledged_);
    while (send_some(transfer) && receive_checked(transfer)) {
      if (!transfer.sends() && !transfer.receives()) return true;
      if (find_trouble(watched)) {
        // Bytes that a neighbour sent before it left are still worth reading; nothing else can
        // come.
        deadline = std::min(deadline, in(kShortWhile));
        watched.clear();
      }
      deadline = last_wait_.limit(deadline);
      if (std::chrono::steady_clock::now() >= deadline) return false;
      // Checked even after the kernel has taken all bytes: they may never arrive.
      if (!wait_for_neighbours(transfer, watched, deadline) &&
          cut.is_cut(acknowledgements_of(transfer.to), std::chrono::steady_clock::now())) {
        return false;
      }
    }
    return false;
  }

  Status attempt(const std::string& name, CallHeader header, const std::function<bool()>& action) {
    if (broken_) return *broken_;
    header.number = ++calls_;
    header_ = header;
    header_out_ = std::as_bytes(std::span(&header_, 1));
    header_in_ = std::as_writable_bytes(std::span(&heard_, 1));
    deadline_ = in(timeout_);
    return action() ? success() : fail(name, std::chrono::steady_clock::now() >= deadline_);
  }

  // Closed connections inform the neighbours. `unreachable`: the neighbour that this worker did not
  // meet. It is to blame only if no other worker has given up before: such a worker closes its
  // listener, so its neighbour does not reach it either.
  Status fail(const std::string& name, bool late, std::optional<std::int64_t> unreachable = {}) {
    next_.reset();
    previous_.reset();
    std::vector<int> watched = membership_.connections();
    if (unreachable && find_trouble(watched)) unreachable.reset();
    broken_ = membership_.explain_loss(
        {name + " (collective " + std::to_string(calls_) + ")", late, unreachable, mismatch_});
    return *broken_;
  }

  Membership& membership_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds unacknowledged_;
  LastWait last_wait_;
  std::optional<Connection> next_;
  std::optional<Connection> previous_;
  Deadline deadline_;  // of the call under way
  std::uint64_t calls_ = 0;
  CallHeader header_;  // of the call under way
  CallHeader heard_;   // of the previous worker, once header_in_ is read
  std::span<const std::byte> header_out_;
  std::span<std::byte> header_in_;
  std::string mismatch_;         // "" or how the previous worker's call differs
  std::optional<Error> broken_;  // why no call can succeed any more
};

}  // namespace

Result<std::unique_ptr<Collective>> make_ring_collective(Membership& membership,
                                                         std::chrono::milliseconds timeout,
                                                         std::chrono::milliseconds unacknowledged) {
  auto made = std::make_unique<RingCollective>(membership, timeout, unacknowledged);
  FETTLE_TRY(made->connect());
  return std::unique_ptr<Collective>(std::move(made));
}

}  // namespace fettle::trainer
