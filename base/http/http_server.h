// HttpServer: answers GET and HEAD with a handler: probes, Prometheus, the live page. HTTP by
// libmicrohttpd.
//
// One thread serves all ports and never blocks on a client. A connection ends after its answer, and
// after `lifetime` at the latest, so a client that sends or reads slowly holds one of
// kMaxConnections per port for that long and delays no other client. A stream (http_stream.h) lasts
// until it ends, or until its client has read nothing for `lifetime`. A request has at most
// kMaxRequestBytes and no body. The handler runs on the server's thread and must return quickly;
// slow work belongs to another thread, which answers by HttpLater (http_later.h).
// Nothing is authenticated or encrypted here; the handler sees the headers.
//
// listen(), start() and stop() are called by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/http/http_later.h"
#include "base/http/http_stream.h"
#include "base/result.h"

namespace fettle {

inline constexpr std::size_t kMaxConnections = 64;  // per port
inline constexpr std::size_t kMaxRequestBytes = 8'192;

struct HttpRequest {
  std::string path;                                         // decoded, without the query
  std::map<std::string, std::string, std::less<>> query;    // decoded
  std::map<std::string, std::string, std::less<>> headers;  // by name in lower case

  // Returns "" if the request has no such header or member of the query.
  std::string_view header(std::string_view name) const;
  std::string_view query_value(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides the type
  std::shared_ptr<HttpStream> stream = nullptr;                   // the body, instead of `body`
  std::shared_ptr<HttpLater> later = nullptr;                     // the answer, instead of this one
};

// Who can reach a port.
enum class Reach {
  kEverywhere,   // all IPv4 and IPv6 addresses
  kThisMachine,  // 127.0.0.1
};

class HttpServer {
 public:
  // The handler answers 404 itself.
  using Handler = std::function<HttpAnswer(const HttpRequest& request)>;

  // `lifetime`: of a connection, from its first byte to the last of its answer.
  explicit HttpServer(std::chrono::milliseconds lifetime = std::chrono::seconds(10));
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens on a port; 0 = any free port. Returns the port. Call before start().
  Result<std::uint16_t> listen(std::uint16_t port, Handler handler,
                               Reach reach = Reach::kEverywhere);
  // Listens on a Unix socket that only this user may use. Replaces a socket that nobody serves.
  Status listen(const std::string& path, Handler handler);
  Status start();
  // Ends all connections, streams too.
  void stop();

 private:
  struct Listener;
  void run();

  const std::chrono::milliseconds lifetime_;
  std::list<std::unique_ptr<Listener>> listeners_;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace fettle
