#include "base/http/http_stream.h"

#include <microhttpd.h>

#include <algorithm>
#include <cstring>

namespace fettle {

bool HttpStream::send(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t pending = bytes_.size() - taken_;
  if (gone_ || ended_ || pending + bytes.size() > kMostPending) return false;
  if (pending == 0) progress_ = Clock::now();
  bytes_.erase(0, taken_);
  taken_ = 0;
  bytes_ += bytes;
  wake();
  return true;
}

void HttpStream::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  wake();
}

bool HttpStream::is_closed() const {
  const std::lock_guard lock(mutex_);
  return gone_ || ended_;
}

std::size_t HttpStream::pending() const {
  const std::lock_guard lock(mutex_);
  return bytes_.size() - taken_;
}

void HttpStream::attach(MHD_Connection* connection) {
  const std::lock_guard lock(mutex_);
  connection_ = connection;
}

void HttpStream::detach() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  connection_ = nullptr;
  bytes_.clear();
  taken_ = 0;
}

std::optional<std::size_t> HttpStream::take(char* to, std::size_t most) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(most, bytes_.size() - taken_);
  if (count == 0) {
    if (ended_) return std::nullopt;
    suspended_ = true;
    MHD_suspend_connection(connection_);
    return 0;
  }
  std::memcpy(to, bytes_.data() + taken_, count);
  taken_ += count;
  progress_ = Clock::now();
  return count;
}

std::optional<HttpStream::Clock::time_point> HttpStream::stalled_since() const {
  const std::lock_guard lock(mutex_);
  if (bytes_.size() == taken_) return std::nullopt;
  return progress_;
}

void HttpStream::wake() {
  if (!suspended_) return;
  suspended_ = false;
  MHD_resume_connection(connection_);
}

}  // namespace fettle
