// A connection is read until its request is whole, answered, and closed by the client, or by us
// when it takes too long. Closing at once would let the kernel throw away an answer that the client
// has not read yet, if more of its request arrives.
#include "operator/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "operator/http_request.h"

namespace fettle::op {

namespace {

constexpr int kBacklog = 64;

std::string last_error() { return std::strerror(errno); }

// A socket that listens on `port` of all addresses, or -1 with errno.
int open_listener(int family, std::uint16_t port) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  const int no = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const int bound = family == AF_INET6
                        ? ::bind(fd, reinterpret_cast<const sockaddr*>(&six), sizeof six)
                        : ::bind(fd, reinterpret_cast<const sockaddr*>(&four), sizeof four);
  if (bound == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

HttpAnswer refusal(int status) {
  return {status, "text/plain; charset=utf-8", std::string(reason_phrase(status)) + "\n"};
}

}  // namespace

HttpServer::HttpServer(HttpTimes times)
    : times_(times), stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HttpServer::~HttpServer() {
  stop();
  for (const Listener& listener : listeners_) ::close(listener.fd);
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

Result<std::uint16_t> HttpServer::listen(std::uint16_t port, Handler handler) {
  int fd = open_listener(AF_INET6, port);
  if (fd < 0 && errno != EADDRINUSE && errno != EACCES) fd = open_listener(AF_INET, port);
  if (fd < 0)
    return io_error("cannot listen on port " + std::to_string(port) + ": " + last_error());
  listeners_.push_back({fd, std::move(handler)});
  return port_of(fd);
}

Status HttpServer::start() {
  if (stop_fd_ < 0) return io_error("cannot make an eventfd: " + last_error());
  thread_ = std::thread([this] { run(); });
  return success();
}

void HttpServer::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof one);
  thread_.join();
}

void HttpServer::run() {
  std::vector<pollfd> polled;
  while (true) {
    polled.assign(1, {stop_fd_, POLLIN, 0});
    const bool room = connections_.size() < kMaxConnections;
    for (const Listener& listener : listeners_) {
      polled.push_back({listener.fd, static_cast<short>(room ? POLLIN : 0), 0});
    }
    Time next = Time::max();
    for (const Connection& connection : connections_) {
      const bool writes = connection.stage == Stage::kAnswering;
      polled.push_back({connection.fd, static_cast<short>(writes ? POLLOUT : POLLIN), 0});
      next = std::min(next, connection.until);
    }
    int wait_ms = -1;
    if (next != Time::max()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
      wait_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    }
    ::poll(polled.data(), polled.size(), wait_ms);
    if (polled[0].revents != 0) break;
    const Time now = std::chrono::steady_clock::now();
    std::size_t i = 1 + listeners_.size();
    for (auto it = connections_.begin(); it != connections_.end(); ++i) {
      const bool goes_on = polled[i].revents != 0 ? advance(*it, now) : expire(*it, now);
      if (!goes_on) ::close(it->fd);
      it = goes_on ? std::next(it) : connections_.erase(it);
    }
    for (std::size_t at = 0; at < listeners_.size(); ++at) {
      if (polled[at + 1].revents != 0) accept_from(listeners_[at], now);
    }
  }
  for (const Connection& connection : connections_) ::close(connection.fd);
  connections_.clear();
}

void HttpServer::accept_from(const Listener& listener, Time now) {
  while (connections_.size() < kMaxConnections) {
    const int fd = ::accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    Connection connection;
    connection.fd = fd;
    connection.listener = &listener;
    connection.until = now + times_.request;
    connections_.push_back(std::move(connection));
  }
}

bool HttpServer::advance(Connection& connection, Time now) {
  switch (connection.stage) {
    case Stage::kReading:
      return read(connection, now);
    case Stage::kAnswering:
      return write(connection, now);
    case Stage::kLingering:
      break;
  }
  std::array<char, 4096> ignored{};
  const ssize_t got = ::recv(connection.fd, ignored.data(), ignored.size(), 0);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)) ? expire(connection, now)
                                                                     : false;
}

bool HttpServer::read(Connection& connection, Time now) {
  std::array<char, 4096> bytes{};
  const ssize_t got = ::recv(connection.fd, bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return expire(connection, now);
  if (got <= 0) return false;
  connection.received.append(bytes.data(), static_cast<std::size_t>(got));
  const HttpRequestHead head = read_request_head(connection.received);
  if (head.state == HttpRequestHead::State::kBad) {
    answer(connection, refusal(head.status), false, now);
  } else if (head.state == HttpRequestHead::State::kGood) {
    answer(connection, connection.listener->handler(head.path), head.head, now);
  } else if (connection.received.size() >= kMaxRequestBytes) {
    answer(connection, refusal(431), false, now);
  } else {
    return expire(connection, now);
  }
  return write(connection, now);
}

void HttpServer::answer(Connection& connection, const HttpAnswer& answer, bool head, Time now) {
  connection.stage = Stage::kAnswering;
  connection.until = now + times_.answer;
  connection.received.clear();
  connection.answer = "HTTP/1.1 " + std::to_string(answer.status) + " " +
                      std::string(reason_phrase(answer.status)) +
                      "\r\nContent-Type: " + answer.content_type +
                      "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                      (answer.status == 405 ? "\r\nAllow: GET, HEAD" : "") +
                      "\r\nConnection: close\r\n\r\n" + (head ? "" : answer.body);
}

bool HttpServer::write(Connection& connection, Time now) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t sent = ::send(connection.fd, connection.answer.data() + connection.sent,
                                connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return expire(connection, now);
    if (sent <= 0) return false;
    connection.sent += static_cast<std::size_t>(sent);
  }
  ::shutdown(connection.fd, SHUT_WR);
  connection.stage = Stage::kLingering;
  connection.until = now + times_.linger;
  return true;
}

// Who is slow with a request hears so; who is slow to read does not.
bool HttpServer::expire(Connection& connection, Time now) {
  if (now < connection.until) return true;
  if (connection.stage != Stage::kReading) return false;
  answer(connection, refusal(408), false, now);
  return write(connection, now);
}

}  // namespace fettle::op
