// This server's own loop drives libmicrohttpd (its external epoll mode), because the library's
// timeout counts idle time, in seconds: a client that sends a byte now and then would never meet
// it.
#include "base/http/http_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace fettle {

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

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
  });
  return out;
}

// Adds each value to the map that `to` points at. The last one of a name counts.
MHD_Result add_value(void* to, MHD_ValueKind kind, const char* name, const char* value) {
  auto& values = *static_cast<std::map<std::string, std::string, std::less<>>*>(to);
  const std::string key = kind == MHD_HEADER_KIND ? in_lower_case(name) : name;
  values[key] = value == nullptr ? "" : value;
  return MHD_YES;
}

HttpRequest request_of(MHD_Connection* connection, const char* path) {
  HttpRequest out;
  out.path = path;
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_value, &out.query);
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add_value, &out.headers);
  return out;
}

// ---- Answers -----------------------------------------------------------------------------------

constexpr std::size_t kPiece = 16 << 10;  // bytes of a stream that are sent at once

using StreamPointer = std::shared_ptr<HttpStream>;

MHD_Result queue(MHD_Connection* connection, const HttpAnswer& answer, MHD_Response* response) {
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type.c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);  // the connection has its own reference
  return queued;
}

MHD_Result send(MHD_Connection* connection, const HttpAnswer& answer) {
  return queue(
      connection, answer,
      MHD_create_response_from_buffer(answer.body.size(), const_cast<char*>(answer.body.data()),
                                      MHD_RESPMEM_MUST_COPY));
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

std::string_view HttpRequest::query_value(std::string_view name) const {
  const auto found = query.find(name);
  return found == query.end() ? std::string_view() : found->second;
}

struct HttpServer::Listener {
  struct Open {
    int fd = -1;
    Clock::time_point until;
    std::weak_ptr<HttpStream> stream;  // its answer, if it is one
    std::shared_ptr<HttpLater> later;  // its answer, until that has come
  };

  Handler handler;
  std::chrono::milliseconds lifetime{};
  std::vector<Open> connections;
  MHD_Daemon* daemon = nullptr;
  std::string socket_path;  // "" = a port

  ~Listener() {
    if (daemon == nullptr) return;
    // The library must not be stopped while a connection is suspended.
    for (const Open& open : connections) {
      if (const StreamPointer stream = open.stream.lock()) stream->end();
      if (open.later != nullptr) open.later->give_up();
    }
    MHD_run(daemon);
    MHD_stop_daemon(daemon);
    if (!socket_path.empty()) ::unlink(socket_path.c_str());
  }

  static void on_connection(void* self, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    auto& listener = *static_cast<Listener*>(self);
    const int fd = fd_of(connection);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      listener.connections.push_back({fd, Clock::now() + listener.lifetime, {}, nullptr});
    } else {
      std::erase_if(listener.connections, [fd](const Open& open) { return open.fd == fd; });
    }
  }

  // Called once the header of a request is complete: the answer need not wait for a body. Called
  // again when the answer that it waits for has come.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path,
                               const char* method, const char* version, const char*, std::size_t*,
                               void**) {
    auto& listener = *static_cast<Listener*>(self);
    if (Open* const open = listener.find(connection); open != nullptr && open->later != nullptr) {
      return listener.send_later(*open, connection);
    }
    if (const unsigned status = refuse(connection, path, method, version)) {
      const std::string reason = MHD_get_reason_phrase_for(status);
      return send(connection,
                  {static_cast<int>(status), "text/plain; charset=utf-8", reason + "\n"});
    }
    return listener.send_answer(connection, listener.handler(request_of(connection, path)));
  }

  Open* find(MHD_Connection* connection) {
    const auto found = std::ranges::find(connections, fd_of(connection), &Open::fd);
    return found == connections.end() ? nullptr : &*found;
  }

  MHD_Result send_answer(MHD_Connection* connection, const HttpAnswer& answer) {
    Open* const open = find(connection);
    if (open == nullptr) return MHD_NO;
    if (answer.stream != nullptr) return send_stream(*open, connection, answer);
    if (answer.later == nullptr) return send(connection, answer);
    open->later = answer.later;
    answer.later->wait(connection);
    return MHD_YES;  // on_request() is called again
  }

  MHD_Result send_later(Open& open, MHD_Connection* connection) {
    const std::unique_ptr<HttpAnswer> answer = open.later->take();
    open.later = nullptr;
    open.until = Clock::now() + lifetime;
    if (answer == nullptr) return MHD_NO;
    return send_answer(connection, *answer);
  }

  MHD_Result send_stream(Open& open, MHD_Connection* connection, const HttpAnswer& answer) const {
    answer.stream->attach(connection);
    open.stream = answer.stream;
    return queue(connection, answer,
                 MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kPiece, read_stream,
                                                   new StreamPointer(answer.stream), free_stream));
  }

  static ssize_t read_stream(void* stream, std::uint64_t, char* to, std::size_t most) {
    const auto taken = (*static_cast<StreamPointer*>(stream))->take(to, most);
    return taken ? static_cast<ssize_t>(*taken) : MHD_CONTENT_READER_END_OF_STREAM;
  }

  static void free_stream(void* stream) {
    auto* const pointer = static_cast<StreamPointer*>(stream);
    (*pointer)->detach();
    delete pointer;
  }

  static int fd_of(MHD_Connection* connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  }

  bool is_expired(const Open& open) const {
    if (open.later != nullptr) return false;  // whoever works on the answer has its own deadlines
    const StreamPointer stream = open.stream.lock();
    if (stream == nullptr) return Clock::now() >= open.until;
    const auto stalled = stream->stalled_since();
    return stalled && Clock::now() >= *stalled + lifetime;
  }

  // libmicrohttpd closes a connection whose socket has been shut down.
  void end_expired() {
    for (const Open& open : connections) {
      if (is_expired(open)) ::shutdown(open.fd, SHUT_RDWR);
    }
  }

  // Starts the library with the options that all listeners share, and `address`.
  bool open(unsigned flags, std::uint16_t port, MHD_OptionItem address) {
    MHD_OptionItem options[] = {
        {MHD_OPTION_CONNECTION_LIMIT, kMaxConnections, nullptr},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, 2 * kMaxRequestBytes, nullptr},  // half of it: reading
        {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<std::intptr_t>(&on_connection), this},
        address,
        {MHD_OPTION_END, 0, nullptr}};
    errno = 0;
    daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_SUPPRESS_DATE_NO_CLOCK | MHD_ALLOW_SUSPEND_RESUME | flags, port,
        nullptr, nullptr, on_request, this, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    return daemon != nullptr;
  }

  // Without IPv6 in the kernel the second attempt listens on IPv4 alone.
  bool open_everywhere(std::uint16_t port) {
    for (const unsigned family : {MHD_USE_DUAL_STACK, MHD_NO_FLAG}) {
      if (open(family, port, {MHD_OPTION_END, 0, nullptr})) return true;
      if (errno == EADDRINUSE || errno == EACCES) break;  // IPv4 alone would fail, too
    }
    return false;
  }

  bool open_here(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return open(MHD_NO_FLAG, port, {MHD_OPTION_SOCK_ADDR, 0, &address});
  }
};

namespace {

// Whether a server answers at this socket.
bool is_served(const sockaddr_un& address) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool served =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return served;
}

Result<int> open_unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return invalid("the path of a socket has at most " +
                   std::to_string(sizeof address.sun_path - 1) + " bytes: " + path);
  }
  std::ranges::copy(path, address.sun_path);
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) return invalid(path + " exists, and is no socket");
    if (is_served(address)) return Error{ErrorCode::kUnavailable, path + " is in use"};
    ::unlink(path.c_str());
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  // Nobody can connect before listen(), so the mode is set in time.
  if (fd >= 0 && ::bind(fd, to, sizeof address) == 0 && ::chmod(path.c_str(), 0600) == 0 &&
      ::listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const std::string why = last_error();
  if (fd >= 0) ::close(fd);
  return io_error("cannot listen on " + path + ": " + why);
}

}  // namespace

HttpServer::HttpServer(std::chrono::milliseconds lifetime)
    : lifetime_(lifetime), stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

HttpServer::~HttpServer() {
  stop();
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

Result<std::uint16_t> HttpServer::listen(std::uint16_t port, Handler handler, Reach reach) {
  auto listener = std::make_unique<Listener>();
  listener->handler = std::move(handler);
  listener->lifetime = lifetime_;
  const bool opened =
      reach == Reach::kThisMachine ? listener->open_here(port) : listener->open_everywhere(port);
  if (!opened)
    return io_error("cannot listen on port " + std::to_string(port) + ": " + last_error());
  const auto bound = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
  listeners_.push_back(std::move(listener));
  return bound;
}

Status HttpServer::listen(const std::string& path, Handler handler) {
  FETTLE_ASSIGN(const int fd, open_unix_socket(path));
  auto listener = std::make_unique<Listener>();
  listener->handler = std::move(handler);
  listener->lifetime = lifetime_;
  if (!listener->open(MHD_NO_FLAG, 0, {MHD_OPTION_LISTEN_SOCKET, fd, nullptr})) {
    ::close(fd);
    return io_error("cannot serve " + path + ": " + last_error());
  }
  listener->socket_path = path;
  listeners_.push_back(std::move(listener));
  return success();
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

}  // namespace fettle
