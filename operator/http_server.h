// HttpServer: answers GET requests for metrics and probes. Small on purpose: HTTP/1.1, one answer a
// connection, no bodies, no TLS.
//
// One thread, one poll loop, several ports; on IPv6 and IPv4. Everything is bounded: connections
// (more wait in the kernel), the bytes of a request, and the time from accept to close, so that
// clients that are slow, silent or hostile cost a slot for a moment and nothing else. Handlers run
// on that thread and must return quickly. start() and stop() are called by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"

namespace fettle::op {

inline constexpr std::size_t kMaxConnections = 64;
inline constexpr std::size_t kMaxRequestBytes = 8'192;

// How long each part of a connection may take.
struct HttpTimes {
  std::chrono::milliseconds request{5'000};  // from accept to the end of the request
  std::chrono::milliseconds answer{5'000};   // from then until it is sent
  std::chrono::milliseconds linger{1'000};   // for the client to close
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // `path` is without its query. 404 is the handler's to say.
  using Handler = std::function<HttpAnswer(std::string_view path)>;

  explicit HttpServer(HttpTimes times = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens on all addresses; port 0 = any that is free. Returns the port. Before start().
  Result<std::uint16_t> listen(std::uint16_t port, Handler handler);
  Status start();
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Listener {
    int fd = -1;
    Handler handler;
  };
  enum class Stage { kReading, kAnswering, kLingering };
  struct Connection {
    int fd = -1;
    const Listener* listener = nullptr;
    Stage stage = Stage::kReading;
    std::string received;
    std::string answer;
    std::size_t sent = 0;
    Time until;
  };

  void run();
  void accept_from(const Listener& listener, Time now);
  // These return false when the connection is over.
  bool advance(Connection& connection, Time now);
  bool read(Connection& connection, Time now);
  bool write(Connection& connection, Time now);
  void answer(Connection& connection, const HttpAnswer& answer, bool head, Time now);
  bool expire(Connection& connection, Time now);

  const HttpTimes times_;
  std::vector<Listener> listeners_;
  std::list<Connection> connections_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace fettle::op
