#include "kube/transport/testing/test_server.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/check.h"

namespace fettle::kube {
namespace {

std::unique_ptr<BIO, decltype(&BIO_free)> open_text(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

void trust_clients_of(SSL_CTX* context, const std::string& ca) {
  X509* const certificate = PEM_read_bio_X509(open_text(ca).get(), nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate);
  X509_free(certificate);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

SSL_CTX* make_context(const TestServer::Tls& tls) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  X509* const certificate =
      PEM_read_bio_X509(open_text(tls.identity.certificate).get(), nullptr, nullptr, nullptr);
  EVP_PKEY* const key =
      PEM_read_bio_PrivateKey(open_text(tls.identity.key).get(), nullptr, nullptr, nullptr);
  CHECK(SSL_CTX_use_certificate(context, certificate) == 1, "certificate");
  CHECK(SSL_CTX_use_PrivateKey(context, key) == 1, "key");
  X509_free(certificate);
  EVP_PKEY_free(key);
  SSL_CTX_set_security_level(context, 0);  // or it would not offer TLS 1.1
  SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context, tls.newest_version);
  if (!tls.client_ca.empty()) trust_clients_of(context, tls.client_ca);
  return context;
}

}  // namespace

std::string TestConnection::read_some() {
  char buffer[16384];
  const auto got = ssl_ != nullptr ? static_cast<ssize_t>(SSL_read(ssl_, buffer, sizeof(buffer)))
                                   : ::recv(socket_, buffer, sizeof(buffer), 0);
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "";
}

std::optional<TestRequest> TestConnection::read_request() {
  const auto more = [&] {
    const std::string piece = read_some();
    left_ += piece;
    return !piece.empty();
  };
  std::size_t end = 0;
  while ((end = left_.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  TestRequest request;
  std::string head = left_.substr(0, end + 2);
  left_.erase(0, end + 4);
  const std::string first = head.substr(0, head.find("\r\n"));
  head.erase(0, first.size() + 2);
  request.method = first.substr(0, first.find(' '));
  request.target = first.substr(request.method.size() + 1);
  request.target.resize(request.target.rfind(' '));
  while (!head.empty()) {
    const std::size_t line_end = head.find("\r\n");
    const std::size_t colon = head.find(':');
    std::string name = head.substr(0, colon);
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::size_t start = head.find_first_not_of(' ', colon + 1);
    request.headers[name] = head.substr(start, line_end - start);
    head.erase(0, line_end + 2);
  }
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (left_.size() < size) {
    if (!more()) return std::nullopt;
  }
  request.body = left_.substr(0, size);
  left_.erase(0, size);
  return request;
}

bool TestConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto size =
        ssl_ != nullptr
            ? static_cast<ssize_t>(SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())))
            : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

bool TestConnection::answer(int status, std::string_view body, const std::string& headers) {
  return send("HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" + headers +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

bool TestConnection::start_chunked() {
  return send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool TestConnection::send_chunk(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  return send(size + std::string(bytes) + "\r\n");
}

void TestConnection::wait_until_left(std::chrono::milliseconds most) {
  pollfd polled{socket_, POLLIN, 0};
  while (::poll(&polled, 1, static_cast<int>(most.count())) > 0 && !read_some().empty()) {
  }
  hang_up();
}

TestServer::TestServer(Handler handler, std::optional<Tls> tls) : handler_(std::move(handler)) {
  std::signal(SIGPIPE, SIG_IGN);  // SSL_write has no MSG_NOSIGNAL
  if (tls) context_.reset(make_context(*tls));
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  CHECK(::listen(listener_, 128) == 0, "listen");
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

TestServer::~TestServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) ::close(socket);
  ::close(listener_);
}

std::string TestServer::url() const {
  return (context_ == nullptr ? "http" : "https") + std::string("://127.0.0.1:") +
         std::to_string(port_);
}

std::vector<TestRequest> TestServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void TestServer::accept_all() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void TestServer::serve(int socket) {
  if (context_ == nullptr) {
    serve_requests(TestConnection(socket, nullptr));
  } else {
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context_.get()), &SSL_free);
    SSL_set_fd(ssl.get(), socket);
    if (SSL_accept(ssl.get()) == 1) serve_requests(TestConnection(socket, ssl.get()));
  }
  ::shutdown(socket, SHUT_RDWR);
}

void TestServer::serve_requests(TestConnection connection) {
  while (connection.is_open()) {
    const std::optional<TestRequest> request = connection.read_request();
    if (!request) return;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(*request);
    }
    handler_(*request, connection);
  }
}

}  // namespace fettle::kube
