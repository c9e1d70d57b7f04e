// Connection: a TCP connection between two workers, which carries frames: four bytes of length,
// little-endian, then that many bytes. And Listener: where they come in.
//
// Nothing waits longer than its deadline. Who is at the other end is not known before a frame has
// said so, so every reader says how long a frame may be. Errors are kUnavailable: the other end has
// gone, or is late. Each object is used from one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace fettle::trainer {

// Before each frame.
inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kLongestFrame = 0xffff'ffff;  // which they can say

// A connection is cut when what was sent is not acknowledged for this long.
inline constexpr std::chrono::milliseconds kUnacknowledgedTime = std::chrono::seconds(30);

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}
// For poll(): whole milliseconds, not less than 0.
int milliseconds_until(Deadline deadline);

// Where a worker listens: "10.0.0.7" or a name, and a port.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
std::string to_string(const Endpoint& endpoint);

// Owns a file descriptor.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  int fd() const { return fd_; }
  void close();

 private:
  int fd_;
};

class Connection {
 public:
  explicit Connection(Socket socket);

  // Tries again until the deadline: the other end may start later, and its name be known later.
  static Result<Connection> open(const Endpoint& to, Deadline deadline);

  // After an error a part of the frame may have been sent, so the connection is of no more use.
  // Errors also: kInvalid, before a byte is sent, for more than kLongestFrame bytes.
  Status send(std::string_view frame, Deadline deadline);
  // A frame of at most `most` bytes. Errors also: kInvalid where it is announced to be longer.
  Result<std::string> receive(std::size_t most, Deadline deadline);
  // Takes what has come; absent while the frame is not whole. For loops around poll().
  Result<std::optional<std::string>> receive_now(std::size_t most);

  // Keeps the connection however long the other end reads nothing: whoever sends asks a CutWatch.
  void allow_slow_reader();

  int fd() const { return socket_.fd(); }
  std::string local_host() const;  // this end, as a number: where others reach this machine
  std::string peer_host() const;   // the other end's address: "10.0.0.8"
  std::string peer() const;        // for people: "10.0.0.8:40112"

 private:
  Socket socket_;
  std::string received_;  // not yet a whole frame, or more than one
};

// What the kernel knows of the bytes that were sent on a connection.
struct Acknowledgements {
  bool awaited = false;  // bytes or a probe of the closed window are under way
  std::chrono::milliseconds since_last{};
};
Acknowledgements acknowledgements_of(int connection);

// CutWatch: tells a cut network from a reader that is slow. TCP_USER_TIMEOUT cannot: it also counts
// the time in which the other end acknowledges everything and has no room for more.
// Pure but for what it is told.
class CutWatch {
 public:
  explicit CutWatch(std::chrono::milliseconds limit) : limit_(limit) {}
  // Whether all that was seen for as long as the limit went unacknowledged.
  bool is_cut(const Acknowledgements& seen, Deadline now);

 private:
  const std::chrono::milliseconds limit_;
  std::optional<Deadline> silent_since_;
};

class Listener {
 public:
  // Port 0 takes a free one. A loopback host is listened on alone, any other on all addresses.
  static Result<Listener> open(const Endpoint& at);
  std::uint16_t port() const;
  int fd() const { return socket_.fd(); }
  // Absent if no connection waits.
  std::optional<Connection> accept();

 private:
  explicit Listener(Socket socket) : socket_(std::move(socket)) {}

  Socket socket_;
};

}  // namespace fettle::trainer
