// Connection: a TCP connection between two workers, which carries frames: four bytes of length,
// little-endian, then that many bytes. Listener: accepts such connections.
//
// No call waits longer than its deadline. The other end is unknown until a frame has identified it,
// so every reader limits the length of a frame. Errors are kUnavailable: the other end has gone, or
// is late. Each object is used from one thread at a time.
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

// Length prefix of each frame.
inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::size_t kLongestFrame = 0xffff'ffff;  // the largest length of the prefix

// A connection is cut if sent bytes stay unacknowledged for this long.
inline constexpr std::chrono::milliseconds kUnacknowledgedTime = std::chrono::seconds(30);

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}
// For poll(): whole milliseconds, at least 0.
int milliseconds_until(Deadline deadline);

// The address of a listening worker: "10.0.0.7" or a name, and a port.
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

  // Retries until the deadline: the other end may start later, and its name may resolve later.
  static Result<Connection> open(const Endpoint& to, Deadline deadline);

  // After an error a part of the frame may have been sent, so the connection is unusable. Errors
  // also: kInvalid, before a byte is sent, for more than kLongestFrame bytes.
  Status send(std::string_view frame, Deadline deadline);
  // Receives a frame of at most `most` bytes. Errors also: kInvalid if it is announced as longer.
  Result<std::string> receive(std::size_t most, Deadline deadline);
  // Reads the bytes that have arrived; absent until the frame is whole. For loops around poll().
  Result<std::optional<std::string>> receive_now(std::size_t most);

  // Keeps the connection however long the other end reads nothing: the sender uses a CutWatch.
  void allow_slow_reader();

  int fd() const { return socket_.fd(); }
  std::string local_host() const;  // this end's address, at which others reach this machine
  std::string peer_host() const;   // the other end's address: "10.0.0.8"
  std::string peer() const;        // for people: "10.0.0.8:40112"

 private:
  Socket socket_;
  std::string received_;  // a partial frame, or more than one
};

// The kernel's state of the bytes sent on a connection.
struct Acknowledgements {
  bool awaited = false;  // bytes or a probe of the closed window are unacknowledged
  std::chrono::milliseconds since_last{};
};
Acknowledgements acknowledgements_of(int connection);

// CutWatch: distinguishes a cut network from a slow reader. TCP_USER_TIMEOUT cannot: it also counts
// the time in which the other end acknowledges everything and has no room for more.
// Performs no IO: observations and time are arguments.
class CutWatch {
 public:
  explicit CutWatch(std::chrono::milliseconds limit) : limit_(limit) {}
  // Whether acknowledgements have been awaited, and none has come, for as long as the limit.
  bool is_cut(const Acknowledgements& seen, Deadline now);

 private:
  const std::chrono::milliseconds limit_;
  std::optional<Deadline> silent_since_;
};

class Listener {
 public:
  // Port 0 takes a free port. A loopback host listens only there, any other host on all addresses.
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
