// HttpServer: answers GET and HEAD with a handler, for probes and Prometheus. HTTP by
// libmicrohttpd.
//
// One thread serves all ports and never blocks on a client. A connection ends after its answer, and
// after `lifetime` at the latest, so a client that sends or reads slowly holds one of
// kMaxConnections per port for that long and delays no other client. A request has at most
// kMaxRequestBytes and no body. The handler runs on the server's thread and must return quickly.
// Nothing is authenticated or encrypted: answers must contain no secrets.
//
// listen(), start() and stop() are called by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace fettle::op {

inline constexpr std::size_t kMaxConnections = 64;  // per port
inline constexpr std::size_t kMaxRequestBytes = 8'192;

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // `path` has no query. The handler answers 404 itself.
  using Handler = std::function<HttpAnswer(std::string_view path)>;

  // `lifetime`: of a connection, from its first byte to the last of its answer.
  explicit HttpServer(std::chrono::milliseconds lifetime = std::chrono::seconds(10));
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens on all IPv4 and IPv6 addresses; port 0 = any free port. Returns the port. Call before
  // start().
  Result<std::uint16_t> listen(std::uint16_t port, Handler handler);
  Status start();
  void stop();

 private:
  struct Listener;
  void run();

  const std::chrono::milliseconds lifetime_;
  std::list<std::unique_ptr<Listener>> listeners_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace fettle::op
