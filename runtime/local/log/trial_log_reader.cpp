// Offsets count bytes of the output. The log may hold only a part of them: the head in the file
// itself, the rest in pieces or, once the log is finished, at the end of the file.
#include "runtime/local/log/trial_log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/file.h"
#include "runtime/local/log/trial_log.h"

namespace fettle::local {
namespace {

constexpr std::int64_t kPiece = TrialLog::kTailBytes;

class ReadOnly {
 public:
  explicit ReadOnly(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~ReadOnly() {
    if (fd_ >= 0) ::close(fd_);
  }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

  int fd() const { return fd_; }
  std::int64_t size() const {
    struct stat status {};
    return fd_ >= 0 && ::fstat(fd_, &status) == 0 ? status.st_size : 0;
  }

 private:
  int fd_;
};

// The numbers of the note behind the head of a log that was cut.
struct Cut {
  std::int64_t note_bytes = 0;   // its own length
  std::int64_t tail_offset = 0;  // offset in the output of the bytes behind it
  std::int64_t all = 0;          // bytes of the output
};

// Absent: the finished log of `size` bytes is whole.
std::optional<Cut> find_cut(int file, std::int64_t size) {
  std::array<char, 128> buffer{};
  const ssize_t got = ::pread(file, buffer.data(), buffer.size(), TrialLog::kHeadBytes);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  constexpr std::string_view kOpening = "\n[fettle: ";
  constexpr std::string_view kOf = " of ";
  const std::size_t of = text.find(kOf);
  if (text.substr(0, kOpening.size()) != kOpening || of == text.npos) return std::nullopt;
  const char* const end = text.data() + text.size();
  std::int64_t missing = 0;
  std::int64_t all = 0;
  std::from_chars(text.data() + kOpening.size(), end, missing);
  std::from_chars(text.data() + of + kOf.size(), end, all);
  const std::string note = left_out_note(missing, all);
  const auto note_bytes = static_cast<std::int64_t>(note.size());
  // A program may print such a line itself; then the numbers do not match this file.
  const bool is_note = text.substr(0, note.size()) == note && all == missing + size - note_bytes;
  if (!is_note) return std::nullopt;
  return Cut{note_bytes, TrialLog::kHeadBytes + missing, all};
}

}  // namespace

Status TrialLogReader::read(bool ended, const Print& print) {
  const ReadOnly file(path_);
  if (file.fd() < 0) {
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 "cannot open " + path_ + ": " + system_message(errno)};
  }
  const std::int64_t size = file.size();
  if (size < std::min(offset_, TrialLog::kHeadBytes)) offset_ = 0;  // the run was begun again
  copy(file.fd(), offset_, std::min(size, TrialLog::kHeadBytes), print);
  if (offset_ < TrialLog::kHeadBytes) return success();  // there is no tail yet
  if (ended && size > TrialLog::kHeadBytes) {
    read_finished(file.fd(), size, print);
  } else {
    read_pieces(print);
  }
  return success();
}

// `from` and `to` are places in the file.
void TrialLogReader::copy(int file, std::int64_t from, std::int64_t to, const Print& print) {
  std::array<char, 65536> buffer;
  while (from < to) {
    const auto most = std::min<std::int64_t>(buffer.size(), to - from);
    const ssize_t got = ::pread(file, buffer.data(), static_cast<std::size_t>(most), from);
    if (got <= 0) return;
    print({buffer.data(), static_cast<std::size_t>(got)});
    from += got;
    offset_ += got;
  }
}

void TrialLogReader::skip_to(std::int64_t offset, std::int64_t all, const Print& print) {
  if (offset <= offset_) return;
  print(left_out_note(offset - offset_, all));
  offset_ = offset;
}

// A piece that is removed meanwhile is missing; the next read says so.
void TrialLogReader::read_pieces(const Print& print) {
  for (const std::int64_t number : tail_pieces(path_)) {
    const ReadOnly piece(tail_piece(path_, number));
    const std::int64_t begin = TrialLog::kHeadBytes + number * kPiece;
    const std::int64_t size = piece.size();
    if (piece.fd() < 0 || begin + size <= offset_) continue;
    skip_to(begin, 0, print);  // 0: the length of the output is not known yet
    copy(piece.fd(), offset_ - begin, size, print);
  }
}

void TrialLogReader::read_finished(int file, std::int64_t size, const Print& print) {
  const std::optional<Cut> cut = find_cut(file, size);
  if (!cut) return copy(file, offset_, size, print);
  skip_to(cut->tail_offset, cut->all, print);
  const std::int64_t tail_at = TrialLog::kHeadBytes + cut->note_bytes;
  copy(file, tail_at + offset_ - cut->tail_offset, size, print);
}

}  // namespace fettle::local
