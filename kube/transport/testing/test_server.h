// For tests: an HTTP/1.1 server on the loopback, whose answers the test writes byte by byte, right
// or wrong. One thread per connection. Thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kube/transport/testing/test_certificates.h"

namespace fettle::kube {

struct TestRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// One connection of a handler.
class TestConnection {
 public:
  TestConnection(int socket, SSL* ssl) : socket_(socket), ssl_(ssl) {}

  std::optional<TestRequest> read_request();
  // Returns false if the client is gone.
  bool send(std::string_view bytes);
  // "HTTP/1.1 200 OK", `headers` ("Name: value\r\n" each), Content-Length and the body.
  bool answer(int status, std::string_view body, const std::string& headers = "");
  bool start_chunked();
  bool send_chunk(std::string_view bytes);
  // Stays silent until the client closes the connection; hangs up after `most`, which only a
  // failing test reaches.
  void wait_until_left(std::chrono::milliseconds most = std::chrono::seconds(120));
  // Breaks the connection; a handler calls it before it returns.
  void hang_up() { open_ = false; }
  bool is_open() const { return open_; }

 private:
  std::string read_some();

  const int socket_;
  SSL* const ssl_;
  bool open_ = true;
  std::string left_;  // read, but not used yet
};

class TestServer {
 public:
  using Handler = std::function<void(const TestRequest&, TestConnection&)>;
  struct Tls {
    TestIdentity identity;
    std::string client_ca;  // clients' certificates must be from it; "" = none required
    int newest_version = TLS1_3_VERSION;
  };

  explicit TestServer(Handler handler, std::optional<Tls> tls = std::nullopt);
  ~TestServer();

  int port() const { return port_; }
  std::string url() const;
  int connections() const { return connections_; }
  std::vector<TestRequest> requests() const;

 private:
  void accept_all();
  void serve(int socket);
  void serve_requests(TestConnection connection);

  const Handler handler_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, &SSL_CTX_free};
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<TestRequest> requests_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace fettle::kube
