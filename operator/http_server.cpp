// This server's own loop drives libmicrohttpd (its external epoll mode), because the library's
// timeout counts idle time, in seconds: a client that sends a byte now and then would never meet
// it.
#include "operator/http_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace fettle::op {

namespace {

using Clock = std::chrono::steady_clock;

// Interval of checks of lifetimes while connections are open.
constexpr std::uint64_t kTickMs = 100;

std::string last_error() { return std::strerror(errno); }

bool announces_body(MHD_Connection* request) {
  const auto header = [request](const char* name) {
    const char* value = MHD_lookup_connection_value(request, MHD_HEADER_KIND, name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const std::string_view length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
  return !header(MHD_HTTP_HEADER_TRANSFER_ENCODING).empty() || !(length.empty() || length == "0");
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// The status with which a request is refused; 0 = it is not.
unsigned refuse(MHD_Connection* request, std::string_view path, std::string_view method,
                std::string_view version) {
  if (version != MHD_HTTP_VERSION_1_1 && version != MHD_HTTP_VERSION_1_0) {
    return MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED;
  }
  if (path.empty() || path.front() != '/' || !is_printable(path)) return MHD_HTTP_BAD_REQUEST;
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return MHD_HTTP_METHOD_NOT_ALLOWED;
  }
  return announces_body(request) ? MHD_HTTP_CONTENT_TOO_LARGE : 0;
}

MHD_Result send(MHD_Connection* request, const HttpAnswer& answer) {
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued =
      MHD_queue_response(request, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);  // the connection has its own reference
  return queued;
}

// Called once the header of a request is complete: the answer need not wait for a body.
MHD_Result on_request(void* handler, MHD_Connection* request, const char* path, const char* method,
                      const char* version, const char*, std::size_t*, void**) {
  if (const unsigned status = refuse(request, path, method, version)) {
    const std::string reason = MHD_get_reason_phrase_for(status);
    return send(request, {static_cast<int>(status), "text/plain; charset=utf-8", reason + "\n"});
  }
  return send(request, (*static_cast<HttpServer::Handler*>(handler))(path));
}

}  // namespace

struct HttpServer::Listener {
  struct Open {
    int fd = -1;
    Clock::time_point until;
  };

  Handler handler;
  std::chrono::milliseconds lifetime{};
  std::vector<Open> connections;
  MHD_Daemon* daemon = nullptr;

  ~Listener() {
    if (daemon != nullptr) MHD_stop_daemon(daemon);
  }

  static void on_connection(void* self, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    auto& listener = *static_cast<Listener*>(self);
    const int fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      listener.connections.push_back({fd, Clock::now() + listener.lifetime});
    } else {
      std::erase_if(listener.connections, [fd](const Open& open) { return open.fd == fd; });
    }
  }

  // libmicrohttpd closes a connection whose socket has been shut down.
  void end_expired() {
    for (const Open& open : connections) {
      if (Clock::now() >= open.until) ::shutdown(open.fd, SHUT_RDWR);
    }
  }
};

HttpServer::HttpServer(std::chrono::milliseconds lifetime)
    : lifetime_(lifetime), stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HttpServer::~HttpServer() {
  stop();
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

Result<std::uint16_t> HttpServer::listen(std::uint16_t port, Handler handler) {
  auto listener = std::make_unique<Listener>();
  listener->handler = std::move(handler);
  listener->lifetime = lifetime_;
  // Without IPv6 in the kernel the second attempt listens on IPv4 alone. libmicrohttpd reads into
  // half of a connection's memory.
  for (const unsigned family : {MHD_USE_DUAL_STACK, MHD_NO_FLAG}) {
    errno = 0;
    listener->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_SUPPRESS_DATE_NO_CLOCK | family, port, nullptr, nullptr, on_request,
        &listener->handler, MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(kMaxConnections),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, 2 * kMaxRequestBytes, MHD_OPTION_NOTIFY_CONNECTION,
        Listener::on_connection, listener.get(), MHD_OPTION_END);
    // IPv4 alone would fail for the same reason.
    if (listener->daemon != nullptr || errno == EADDRINUSE || errno == EACCES) break;
  }
  if (listener->daemon == nullptr) {
    return io_error("cannot listen on port " + std::to_string(port) + ": " + last_error());
  }
  const auto bound = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
  listeners_.push_back(std::move(listener));
  return bound;
}

Status HttpServer::start() {
  if (stop_fd_ < 0) return io_error("cannot make an eventfd: " + last_error());
  FETTLE_ASSIGN(thread_, start_thread([this] { run(); }));
  return success();
}

void HttpServer::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof one);
  thread_.join();
  listeners_.clear();
}

void HttpServer::run() {
  std::vector<pollfd> polled = {{stop_fd_, POLLIN, 0}};
  for (const auto& listener : listeners_) {
    const int fd = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    polled.push_back({fd, POLLIN, 0});
  }
  while (polled[0].revents == 0) {  // until stop() writes to stop_fd_
    std::uint64_t wait_ms = 1'000;
    for (const auto& listener : listeners_) {
      // Also runs once after the last connection has ended: new connections over the limit may
      // wait.
      if (!listener->connections.empty()) wait_ms = kTickMs;
      MHD_run(listener->daemon);
      listener->end_expired();
      MHD_UNSIGNED_LONG_LONG due_ms = 0;
      if (MHD_get_timeout(listener->daemon, &due_ms) == MHD_YES) {
        wait_ms = std::min<std::uint64_t>(wait_ms, due_ms);
      }
      if (!listener->connections.empty()) wait_ms = std::min(wait_ms, kTickMs);
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(wait_ms));
  }
}

}  // namespace fettle::op
