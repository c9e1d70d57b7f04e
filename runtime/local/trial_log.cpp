#include "runtime/local/trial_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/utf8.h"
#include "runtime/local/disk_room.h"

namespace fettle::local {
namespace {

constexpr std::int64_t kAskEvery = 16 << 10;  // bytes

// The length of the character that `text` begins with; 0 if it is none, or a control character.
std::size_t printable_length(std::string_view text) {
  const std::size_t length = utf8_length(text);
  if (length == 0 || length > 2) return length;
  const char32_t code = utf8_code_point(text.substr(0, length));
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  bool replaced = false;
  while (!text.empty()) {
    const char c = text.front();
    std::size_t length = 1;
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? '\n' : ' ';
      replaced = false;
    } else if (c == '\r') {
      // Progress bars: what follows overwrites the line.
    } else if (length = printable_length(text); length > 0) {
      out += text.substr(0, length);
      replaced = false;
    } else {
      if (!replaced) out += "\xEF\xBF\xBD";
      replaced = true;
      length = 1;
    }
    text.remove_prefix(length);
  }
  return out;
}

TrialLog::TrialLog(const std::string& path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) error_ = "cannot open " + path + ": " + system_message(errno);
}

TrialLog::~TrialLog() {
  if (fd_ >= 0) ::close(fd_);
}

void TrialLog::append(std::string_view bytes) {
  if (bytes.size() >= kLastBytes) {
    last_ = bytes.substr(bytes.size() - kLastBytes);
  } else {
    last_ += bytes;
    if (last_.size() > 2 * kLastBytes) last_.erase(0, last_.size() - kLastBytes);
  }
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(kHeadBytes - bytes_, 0));
  const std::string_view head = bytes.substr(0, room);
  bytes_ += static_cast<std::int64_t>(bytes.size());
  write(head);
  bytes.remove_prefix(head.size());
  if (bytes.size() > kTailBytes) {
    tail_seen_ += static_cast<std::int64_t>(bytes.size() - kTailBytes);
    bytes.remove_prefix(bytes.size() - kTailBytes);
    tail_.resize(kTailBytes);
  }
  while (!bytes.empty()) {
    const auto at = static_cast<std::size_t>(tail_seen_) % kTailBytes;
    const std::string_view piece = bytes.substr(0, kTailBytes - at);
    if (tail_.size() < at + piece.size()) tail_.resize(at + piece.size());
    std::copy(piece.begin(), piece.end(), tail_.begin() + static_cast<std::ptrdiff_t>(at));
    tail_seen_ += static_cast<std::int64_t>(piece.size());
    bytes.remove_prefix(piece.size());
  }
}

void TrialLog::finish() {
  if (tail_seen_ > static_cast<std::int64_t>(tail_.size())) {
    const std::int64_t missing = tail_seen_ - static_cast<std::int64_t>(tail_.size());
    write("\n[fettle: " + std::to_string(missing) + " of " + std::to_string(bytes_) +
          " bytes are left out here]\n");
    const auto begin = static_cast<std::size_t>(tail_seen_) % kTailBytes;
    write(std::string_view(tail_).substr(begin));
    write(std::string_view(tail_).substr(0, begin));
  } else {
    write(tail_);
  }
  if (fd_ >= 0 && ::close(fd_) != 0 && error_.empty()) error_ = system_message(errno);
  fd_ = -1;
}

std::string TrialLog::last_lines(int lines) const {
  std::string_view text = last_;
  bool cut = bytes_ > static_cast<std::int64_t>(text.size());
  if (text.size() > kLastBytes) {
    text.remove_prefix(text.size() - kLastBytes);
    cut = true;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::size_t from = text.size();
  for (int i = 0; i < lines && from != std::string_view::npos && from > 0; ++i) {
    from = text.rfind('\n', from - 1);
  }
  if (from != std::string_view::npos && from < text.size()) {
    text.remove_prefix(from + 1);
  } else if (cut) {
    // What is left of the first line would begin anywhere, unless it is all there is.
    const std::size_t newline = text.find('\n');
    if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  }
  return printable(text);
}

void TrialLog::write(std::string_view bytes) {
  // A disk is asked once in a while, not at every line.
  unasked_ += static_cast<std::int64_t>(bytes.size());
  if (fd_ >= 0 && unasked_ >= kAskEvery) {
    if (!has_room_for_log(fd_, unasked_)) {
      error_ = "the log is not complete: the last of the disk is kept for results";
      ::close(fd_);
      fd_ = -1;
      return;
    }
    unasked_ = 0;
  }
  while (!bytes.empty() && fd_ >= 0) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = "the log is not complete: " + system_message(errno);
      ::close(fd_);
      fd_ = -1;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace fettle::local
