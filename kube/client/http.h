// HttpTransport: the only way to the network. cpprestsdk implements it (transport/), in tests an
// API server in memory (testing/fake_api_server.h) or a transport that injects faults.
//
// A transport knows the server's address, TLS and credentials; requests have only path and query.
// It may repeat a request when a connection breaks (cpprestsdk does), so every write must be safe
// to replay: deterministic names, resourceVersion and uid preconditions, server-side apply.
// Thread-safe: calls and streams may run from any number of threads at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fettle::kube {

struct HttpRequest {
  std::string method = "GET";
  std::string target;        // "/api/v1/pods?limit=500", escaped
  std::string content_type;  // of body; "" without one
  std::string body;
};

struct HttpResponse {
  int status = 0;
  std::string body;  // of a stream: "" if status is 200, because on_line got the lines
  std::optional<std::chrono::seconds> retry_after;
  std::vector<std::string> warnings;  // texts of the Warning headers
  std::int64_t date_ms = 0;           // Date header, Unix milliseconds; 0 = none, or unreadable
};

// A request that ended without an answer.
struct HttpFailure {
  // False: the server cannot have received it. True: it may have been carried out.
  bool maybe_done = true;
  std::string message;
};

using HttpResult = std::variant<HttpResponse, HttpFailure>;

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Sends the request and waits for the whole answer, at most `deadline` in all.
  virtual HttpResult call(const HttpRequest& request, std::chrono::milliseconds deadline) = 0;

  // Sends a GET and passes the lines of a 200 answer, without their newline, to `on_line` as they
  // arrive; nothing is received during the call of `on_line`. Ends when the server ends the answer,
  // `on_line` returns false, `stop` is requested, or nothing arrives for `idle` (an HttpFailure).
  // Lines longer than kMaxLine are an HttpFailure.
  virtual HttpResult stream(const HttpRequest& request,
                            const std::function<bool(std::string_view line)>& on_line,
                            std::chrono::milliseconds idle, std::stop_token stop) = 0;
};

inline constexpr std::size_t kMaxLine = 4u << 20;

}  // namespace fettle::kube
