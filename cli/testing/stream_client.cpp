#include "cli/testing/stream_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

namespace fettle::cli {

StreamClient::StreamClient(std::uint16_t port, const std::string& path, const std::string& headers)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  send(path, headers);
}

StreamClient::StreamClient(const std::string& socket, const std::string& path,
                           const std::string& headers)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(socket, address.sun_path);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  send(path, headers);
}

StreamClient::~StreamClient() { ::close(fd_); }

// HTTP 1.0: a stream comes without the marks of its pieces.
void StreamClient::send(const std::string& path, const std::string& headers) const {
  const std::string request = "GET " + path + " HTTP/1.0\r\n" + headers + "\r\n";
  EXPECT_EQ(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
}

bool StreamClient::receive() {
  char bytes[16384];
  const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
  if (count > 0) got_.append(bytes, static_cast<std::size_t>(count));
  return count > 0;
}

bool StreamClient::gets(const std::string& text) {
  std::size_t at = got_.find(text, seen_);
  while (at == std::string::npos) {
    if (!receive()) return false;
    at = got_.find(text, seen_);
  }
  seen_ = at + text.size();
  return true;
}

std::string StreamClient::read_all() {
  while (receive()) {
  }
  return got_;
}

}  // namespace fettle::cli
