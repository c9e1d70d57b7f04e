// HttpStream: the body of an HTTP answer that grows after its header was sent, such as server-sent
// events. One thread or several write; HttpServer sends.
//
// Invariant: no more than kMostPending bytes wait for the client, so a client that never reads
// costs bounded memory. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

struct MHD_Connection;

namespace fettle {

class HttpStream {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostPending = 16 << 20;

  // Appends to the body. False: the client has gone, the body has ended, or too much is pending.
  bool send(std::string_view bytes);
  // Ends the body once everything pending has been sent.
  void end();
  // Whether nothing that is sent can arrive any more.
  bool is_closed() const;
  std::size_t pending() const;

 private:
  friend class HttpServer;

  // For the server. attach() comes first, then take() for each piece, detach() last.
  void attach(MHD_Connection* connection);
  void detach();
  // Moves up to `most` bytes to `to`. 0: suspends the connection until more come. nullopt: the end.
  std::optional<std::size_t> take(char* to, std::size_t most);
  // Since when the client has read nothing although bytes are pending.
  std::optional<Clock::time_point> stalled_since() const;
  void wake();

  mutable std::mutex mutex_;
  std::string bytes_;
  std::size_t taken_ = 0;  // of bytes_
  bool ended_ = false;
  bool gone_ = false;
  bool suspended_ = false;
  MHD_Connection* connection_ = nullptr;
  Clock::time_point progress_ = Clock::now();  // of the client
};

}  // namespace fettle
