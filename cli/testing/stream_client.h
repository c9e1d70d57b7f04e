// StreamClient: a client of an HTTP server that reads an answer as it comes, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fettle::cli {

class StreamClient {
 public:
  // Sends "GET path" to a port of this machine or to a Unix socket; `headers`: lines that end with
  // \r\n.
  StreamClient(std::uint16_t port, const std::string& path, const std::string& headers);
  StreamClient(const std::string& socket, const std::string& path, const std::string& headers);
  ~StreamClient();
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  // Reads until `text` comes, after what was found before. False: the server has ended the answer.
  bool gets(const std::string& text);
  // Reads to the end of the answer; returns all of it.
  std::string read_all();
  // All that was read.
  const std::string& got() const { return got_; }

 private:
  void send(const std::string& path, const std::string& headers) const;
  bool receive();

  int fd_;
  std::string got_;
  std::size_t seen_ = 0;  // the end of what was found
};

}  // namespace fettle::cli
