#include "trainer/parallel/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "base/file.h"

namespace fettle::trainer {
namespace {

constexpr int kBacklog = 1024;  // the most workers of a trial
constexpr std::size_t kReadBytes = 64 << 10;
constexpr auto kRetryInterval = std::chrono::milliseconds(50);

Error gone(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const char* const host = endpoint.host.empty() ? nullptr : endpoint.host.c_str();
  const int code = ::getaddrinfo(host, port.c_str(), &hints, &found);
  if (code != 0) return gone("cannot find " + endpoint.host + ": " + ::gai_strerror(code));
  return Addresses(found);
}

Socket make_socket(const addrinfo& address) {
  return Socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A machine without power, or a network that is cut, sends nothing; these options notice it within
// half a minute. Keep-alive probes watch an idle connection only: while sent bytes are
// unacknowledged the kernel retransmits instead (tcp(7)), for 15 minutes unless TCP_USER_TIMEOUT
// limits it.
void set_options(int fd) {
  const int yes = 1;
  const int idle_seconds = 10;
  const int interval_seconds = 5;
  const int probes = 4;
  const auto unacknowledged = static_cast<unsigned>(kUnacknowledgedTime.count());
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged, sizeof unacknowledged);
}

// Returns false if the deadline passes first.
bool wait_for(int fd, short events, Deadline deadline) {
  pollfd polled{fd, events, 0};
  int ready = -1;
  do {
    ready = ::poll(&polled, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

Result<Connection> try_connect(const Endpoint& to, Deadline deadline) {
  FETTLE_ASSIGN(const Addresses addresses, resolve(to, 0));
  std::string reason;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Socket socket = make_socket(*at);
    if (socket.fd() < 0) {
      reason = system_message(errno);
      continue;
    }
    int code = ::connect(socket.fd(), at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
      // The deadline covers all addresses, so no time is left for another.
      if (!wait_for(socket.fd(), POLLOUT, deadline)) return gone("no answer");
      socklen_t size = sizeof code;
      ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code == 0) return Connection(std::move(socket));
    reason = system_message(code);
  }
  return gone(reason);
}

// The address as a number, "10.0.0.8"; with its port, if `port` is not null.
std::string host_of(const sockaddr_storage& address, socklen_t size, std::string* port) {
  char host[NI_MAXHOST] = "";
  char service[NI_MAXSERV] = "";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, service,
                sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
  if (port != nullptr) *port = service;
  // Strips the prefix of an IPv4 address that came in through an IPv6 socket.
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view name = host;
  return std::string(name.substr(0, kMapped.size()) == kMapped ? name.substr(kMapped.size())
                                                               : name);
}

std::string host_of_peer(int fd, std::string* port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return host_of(address, size, port);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

std::uint32_t length_of(const std::string& bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return length;
}

}  // namespace

int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

std::string to_string(const Endpoint& endpoint) {
  return endpoint.host + ":" + std::to_string(endpoint.port);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Connection::Connection(Socket socket) : socket_(std::move(socket)) { set_options(socket_.fd()); }

Result<Connection> Connection::open(const Endpoint& to, Deadline deadline) {
  for (;;) {
    auto connected = try_connect(to, deadline);
    if (connected.ok()) return connected;
    if (std::chrono::steady_clock::now() + kRetryInterval >= deadline) {
      return Error(connected.error()).in("cannot reach " + to_string(to));
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
}

void Connection::allow_slow_reader() {
  const unsigned never = 0;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
}

// While the reader's window is closed nothing is unacknowledged, and each probe is answered.
Acknowledgements acknowledgements_of(int connection) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_unacked > 0 || info.tcpi_probes > 0,
          std::chrono::milliseconds(info.tcpi_last_ack_recv)};
}

bool CutWatch::is_cut(const Acknowledgements& seen, Deadline now) {
  if (!seen.awaited) {
    silent_since_.reset();
    return false;
  }
  // Acknowledgements from before bytes were awaited do not count as silence.
  silent_since_ = std::max(silent_since_.value_or(now), now - seen.since_last);
  return now - *silent_since_ >= limit_;
}

Status Connection::send(std::string_view frame, Deadline deadline) {
  if (frame.size() > kLongestFrame) {
    return invalid("a message of " + std::to_string(frame.size()) + " bytes cannot be sent; " +
                   std::to_string(kLongestFrame) + " are the most");
  }
  std::string bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>(frame.size() >> (8 * i) & 255);
  }
  bytes += frame;
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t sent = ::send(fd(), left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
    if (sent > 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return gone("the connection was cut");
    if (!wait_for(fd(), POLLOUT, deadline)) return gone("it takes nothing in");
  }
  return success();
}

Result<std::string> Connection::receive(std::size_t most, Deadline deadline) {
  for (;;) {
    FETTLE_ASSIGN(std::optional<std::string> frame, receive_now(most));
    if (frame) return *std::move(frame);
    if (!wait_for(fd(), POLLIN, deadline)) return gone("no answer");
  }
}

Result<std::optional<std::string>> Connection::receive_now(std::size_t most) {
  char buffer[kReadBytes];
  for (;;) {
    if (received_.size() >= kLengthBytes) {
      const std::size_t length = length_of(received_);
      if (length > most) return invalid("a message of " + std::to_string(length) + " bytes");
      if (received_.size() >= kLengthBytes + length) {
        std::string frame = received_.substr(kLengthBytes, length);
        received_.erase(0, kLengthBytes + length);
        return std::optional(std::move(frame));
      }
    }
    const ssize_t got = ::recv(fd(), buffer, sizeof buffer, 0);
    if (got == 0) return gone("the connection was cut");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::optional<std::string>();
    if (got < 0) return gone("the connection was cut: " + system_message(errno));
    received_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string Connection::local_host() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return host_of(address, size, nullptr);
}

std::string Connection::peer_host() const { return host_of_peer(fd(), nullptr); }

std::string Connection::peer() const {
  std::string port;
  const std::string host = host_of_peer(fd(), &port);
  return host + ":" + port;
}

Result<Listener> Listener::open(const Endpoint& at) {
  const Endpoint place{is_loopback(at.host) ? at.host : "", at.port};
  FETTLE_ASSIGN(const Addresses addresses, resolve(place, AI_PASSIVE));
  std::string reason;
  // A socket that listens on all IPv6 addresses also takes IPv4 connections (IPV6_V6ONLY off), so
  // IPv6 is tried first; IPv4 is for machines without it.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
      if (address->ai_family != family) continue;
      Socket socket = make_socket(*address);
      if (socket.fd() < 0) {
        reason = system_message(errno);
        continue;
      }
      const int yes = 1;
      const int no = 0;
      ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (family == AF_INET6) ::setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
      if (::bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 &&
          ::listen(socket.fd(), kBacklog) == 0) {
        return Listener(std::move(socket));
      }
      reason = system_message(errno);
    }
  }
  return io_error("cannot listen on " + to_string(at) + ": " + reason);
}

std::uint16_t Listener::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &size);
  // The port is at the same offset in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::optional<Connection> Listener::accept() {
  const int fd = ::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return Connection(Socket(fd));
}

}  // namespace fettle::trainer
