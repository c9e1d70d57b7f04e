#include "runtime/local/log/trial_log.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/directory.h"
#include "base/file.h"
#include "base/utf8.h"

namespace fettle::local {
namespace {

constexpr std::int64_t kAskEvery = 16 << 10;        // bytes
constexpr std::int64_t kRoomForResults = 32 << 20;  // bytes that logs leave free

// Whether `bytes` more may be written to the log `fd` before a disk is full, so that results still
// fit: on a small disk a twentieth of it stays free. True if the file system does not say.
bool has_room_for_log(int fd, std::int64_t bytes) {
  struct statvfs disk {};
  if (::fstatvfs(fd, &disk) != 0 || disk.f_blocks == 0) return true;
  const auto block = static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t free = static_cast<std::int64_t>(disk.f_bavail) * block;
  const std::int64_t total = static_cast<std::int64_t>(disk.f_blocks) * block;
  return free - bytes >= std::min(total / 20, kRoomForResults);
}

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
      // Progress bars: the following text overwrites the line.
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

std::string tail_piece(const std::string& path, std::int64_t number) {
  return path + ".tail-" + std::to_string(number);
}

std::vector<std::int64_t> tail_pieces(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string first = tail_piece(fs::path(path).filename().string(), 0);
  // The common beginning of their names: without the number 0.
  const std::string_view name_part = std::string_view(first).substr(0, first.size() - 1);
  std::vector<std::int64_t> numbers;
  for (const fs::directory_entry& entry : entries_of(fs::path(path).parent_path().string())) {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, name_part.size(), name_part) != 0) continue;
    std::int64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + name_part.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string left_out_note(std::int64_t missing, std::int64_t all) {
  const std::string of = all > 0 ? " of " + std::to_string(all) : "";
  return "\n[fettle: " + std::to_string(missing) + of + " bytes are left out here]\n";
}

TrialLog::TrialLog(const std::string& path) : path_(path) {
  // The same run may have been begun before, by a supervisor that was killed.
  for (const std::int64_t number : tail_pieces(path_)) ::unlink(tail_piece(path_, number).c_str());
  open(path_, O_CREAT | O_TRUNC);
}

TrialLog::~TrialLog() { close(); }

void TrialLog::open(const std::string& path, int flags) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
  if (fd_ >= 0 || !error_.empty()) return;
  const bool link = errno == ELOOP;
  error_ = "cannot open " + path + ": " + (link ? "it is a link" : system_message(errno));
}

void TrialLog::close() {
  if (fd_ >= 0 && ::close(fd_) != 0 && error_.empty()) error_ = system_message(errno);
  fd_ = -1;
}

void TrialLog::append(std::string_view bytes) {
  if (bytes.size() >= kLastBytes) {
    last_ = bytes.substr(bytes.size() - kLastBytes);
  } else {
    last_ += bytes;
    // Twice, so that a program that prints short lines does not move the text at each of them.
    if (last_.size() > 2 * kLastBytes) last_.erase(0, last_.size() - kLastBytes);
  }
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(kHeadBytes - bytes_, 0));
  const std::string_view head = bytes.substr(0, room);
  bytes_ += static_cast<std::int64_t>(bytes.size());
  write(head);
  bytes.remove_prefix(head.size());
  write_tail(bytes);
}

void TrialLog::write_tail(std::string_view bytes) {
  constexpr auto kPiece = static_cast<std::int64_t>(kTailBytes);
  while (!bytes.empty()) {
    const std::int64_t number = tail_seen_ / kPiece;
    const std::int64_t within = tail_seen_ % kPiece;
    if (within == 0 && error_.empty()) {
      close();
      open(tail_piece(path_, number), O_CREAT | O_TRUNC);
      // The newest two stay. The first two numbers have no file to remove.
      ::unlink(tail_piece(path_, number - 2).c_str());
    }
    const std::string_view part = bytes.substr(0, static_cast<std::size_t>(kPiece - within));
    write(part);  // drops the bytes after an error
    tail_seen_ += static_cast<std::int64_t>(part.size());
    bytes.remove_prefix(part.size());
  }
}

// The last kTailBytes of the output after the head, or all of it.
Result<std::string> TrialLog::newest_tail() const {
  std::string tail;
  const std::int64_t newest = (tail_seen_ - 1) / static_cast<std::int64_t>(kTailBytes);
  for (std::int64_t number = std::max<std::int64_t>(newest - 1, 0); number <= newest; ++number) {
    FETTLE_ASSIGN(const std::string piece, read_file(tail_piece(path_, number)));
    tail += piece;
  }
  if (tail.size() > kTailBytes) tail.erase(0, tail.size() - kTailBytes);
  return tail;
}

void TrialLog::finish() {
  close();
  if (tail_seen_ == 0) return;
  if (error_.empty()) {
    const Result<std::string> tail = newest_tail();
    open(path_, O_APPEND);
    if (!tail.ok() && error_.empty()) error_ = "the log is not complete: " + tail.error().message;
    // Without the tail, the note counts it as missing, and the pieces stay beside the log.
    const auto kept = tail.ok() ? static_cast<std::int64_t>(tail->size()) : 0;
    if (tail_seen_ > kept) write(left_out_note(tail_seen_ - kept, bytes_));
    if (tail.ok()) write(*tail);
    close();
  }
  // Pieces that could not be merged stay readable.
  if (!error_.empty()) return;
  for (const std::int64_t number : tail_pieces(path_)) ::unlink(tail_piece(path_, number).c_str());
}

std::string TrialLog::last_lines(int lines) const {
  std::string_view text = last_;
  bool cut = bytes_ > static_cast<std::int64_t>(text.size());
  if (text.size() > kLastBytes) {
    text.remove_prefix(text.size() - kLastBytes);
    cut = true;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  // The newline before the lines that are wanted; npos or 0: there are no more lines than that.
  std::size_t from = text.size();
  for (int i = 0; i < lines && from != std::string_view::npos && from > 0; ++i) {
    from = text.rfind('\n', from - 1);
  }
  if (from != std::string_view::npos && from < text.size()) {
    text.remove_prefix(from + 1);
  } else if (cut) {
    // The first line has lost its beginning: it is dropped, unless it is the only one.
    const std::size_t newline = text.find('\n');
    if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  }
  return printable(text);
}

void TrialLog::write(std::string_view bytes) {
  // The free space is checked once in a while, not at every line.
  unasked_ += static_cast<std::int64_t>(bytes.size());
  if (fd_ >= 0 && unasked_ >= kAskEvery) {
    if (!has_room_for_log(fd_, unasked_)) {
      error_ = "the log is not complete: the last of the disk is kept for results";
      close();
      return;
    }
    unasked_ = 0;
  }
  while (!bytes.empty() && fd_ >= 0) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = "the log is not complete: " + system_message(errno);
      close();
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace fettle::local
