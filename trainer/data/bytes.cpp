#include "trainer/data/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#ifdef FETTLE_HAVE_ZLIB
#include <zlib.h>
#endif

namespace fettle::trainer {

namespace {

std::string system_error() { return std::strerror(errno); }

constexpr std::size_t kGzipTrailer = 8;

// Closes the descriptor with the last owner.
std::shared_ptr<const int> own(int fd) {
  return {new int(fd), [](const int* owned) {
            if (*owned >= 0) close(*owned);
            delete owned;
          }};
}

}  // namespace

Bytes Bytes::copy_of(std::span<const std::uint8_t> from) {
  std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[from.size()]);
  std::copy(from.begin(), from.end(), memory.get());
  return {memory, {memory.get(), from.size()}};
}

Result<MappedFile::State> MappedFile::state_of(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return io_error(system_error());
  if (!S_ISREG(info.st_mode)) return invalid("is not a file");
  return State{info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// O_NONBLOCK: otherwise opening a FIFO waits for a writer.
Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto file = own(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (*file < 0) {
    const auto code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, "cannot open " + path + ": " + system_error()};
  }
  const Result<State> state = state_of(*file);
  if (!state.ok() && state.error().code == ErrorCode::kInvalid)
    return invalid(path + " is not a file");
  if (!state.ok()) return io_error("cannot read " + path + ": " + state.error().message);
  if (state->size == 0) return invalid(path + " is empty");
  const auto size = static_cast<std::size_t>(state->size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, *file, 0);
  if (address == MAP_FAILED) return io_error("cannot map " + path + ": " + system_error());
  std::shared_ptr<const void> owner(address, [size](void* mapped) { munmap(mapped, size); });
  Bytes bytes(std::move(owner), {static_cast<const std::uint8_t*>(address), size});
  return MappedFile(path, file, *state, std::move(bytes));
}

bool MappedFile::holds(const void* address) const {
  const auto view = bytes_.view();
  const auto* at = static_cast<const std::uint8_t*>(address);
  return at >= view.data() && at < view.data() + view.size();
}

std::string MappedFile::change() const {
  const Result<State> now = state_of(*file_);
  if (!now.ok()) return "cannot be read any more: " + now.error().message;
  if (*now == state_) return "";
  if (now->size == state_.size) return "was written to";
  return "has " + std::to_string(now->size) + " bytes instead of " + std::to_string(state_.size);
}

bool MappedFile::is_whole() const {
  const Result<State> now = state_of(*file_);
  return now.ok() && now->size >= static_cast<std::int64_t>(bytes_.size());
}

void MappedFile::accept() {
  if (const Result<State> now = state_of(*file_); now.ok()) state_ = *now;
}

Result<Bytes> map_file(const std::string& path) {
  FETTLE_ASSIGN(const MappedFile file, MappedFile::open(path));
  return file.bytes();
}

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

GzipTrailer gzip_trailer(std::span<const std::uint8_t> compressed) {
  if (compressed.size() < kGzipTrailer) return {};
  const auto word = [tail = compressed.last(kGzipTrailer)](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{tail[at + i]} << (8 * i);
    return value;
  };
  return {word(0), word(4)};
}

#ifdef FETTLE_HAVE_ZLIB

namespace {

// Deflate compresses by less than this, so a trailer that announces more is false; a small file
// cannot cause a large allocation.
constexpr std::int64_t kMaxDeflateRatio = 1032;

constexpr int kGzipWindow = 15 + 16;  // largest window; + 16: gzip header and trailer
constexpr std::size_t kPiece = std::size_t{1} << 30;  // zlib counts in 32 bits

// Decompresses a gzip stream member by member; zlib checks the CRC and size of each.
class Inflater {
 public:
  explicit Inflater(std::span<const std::uint8_t> compressed) : compressed_(compressed) {
    ready_ = inflateInit2(&stream_, kGzipWindow) == Z_OK;
    stream_.next_in = const_cast<std::uint8_t*>(compressed.data());
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::size_t unread() const {
    return compressed_.size() - static_cast<std::size_t>(stream_.next_in - compressed_.data());
  }
  // Fills `out` from the current position, or up to the end of the member. Returns the number of
  // bytes written; absent: damaged.
  std::optional<std::size_t> read(std::span<std::uint8_t> out) {
    if (!ready_) return std::nullopt;
    stream_.next_out = out.data();
    int status = Z_OK;
    while (status == Z_OK) {  // Z_BUF_ERROR once there is nothing to read, or no room to write
      const auto written = static_cast<std::size_t>(stream_.next_out - out.data());
      stream_.avail_in = static_cast<uInt>(std::min(unread(), kPiece));
      stream_.avail_out = static_cast<uInt>(std::min(out.size() - written, kPiece));
      status = inflate(&stream_, Z_NO_FLUSH);
    }
    member_ended_ = status == Z_STREAM_END;
    if (!member_ended_ && (status != Z_BUF_ERROR || unread() == 0)) return std::nullopt;
    return static_cast<std::size_t>(stream_.next_out - out.data());
  }
  bool member_ended() const { return member_ended_; }
  bool begin_member() { return inflateReset(&stream_) == Z_OK; }

 private:
  const std::span<const std::uint8_t> compressed_;
  z_stream stream_{};
  bool ready_ = false;
  bool member_ended_ = false;
};

// For a file with several members, whose trailer gives only the size of the last one.
std::optional<std::vector<std::uint8_t>> inflate_members(std::span<const std::uint8_t> compressed) {
  std::vector<std::uint8_t> content;
  Inflater inflater(compressed);
  while (true) {
    const std::size_t before = content.size();
    content.resize(before + std::max(before, compressed.size()));
    const auto written = inflater.read(std::span(content).subspan(before));
    if (!written) return std::nullopt;
    content.resize(before + *written);
    if (static_cast<std::int64_t>(content.size()) > kMaxDataBytes) return std::nullopt;
    if (!inflater.member_ended()) continue;
    if (inflater.unread() == 0) return content;
    if (!inflater.begin_member()) return std::nullopt;
  }
}

}  // namespace

Result<Bytes> gunzip(std::span<const std::uint8_t> compressed, const std::string& name) {
  constexpr std::size_t kSmallestGzip = 18;  // header and trailer
  const Error damaged = invalid(
      name + " is a gzip file that is damaged or cut short (" + std::to_string(compressed.size()) +
      " bytes); get it again from where it came from, or gunzip it if it holds more than "
      "4 GiB");
  if (compressed.size() < kSmallestGzip) return damaged;
  const std::int64_t size = gzip_trailer(compressed).length;
  if (size / kMaxDeflateRatio > static_cast<std::int64_t>(compressed.size())) return damaged;
  const auto length = static_cast<std::size_t>(size);
  // Not a vector: filling 47 MB with zeros first would cost a tenth of the start-up time. One more
  // byte gives even empty content an address.
  std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[length + 1]);
  Inflater inflater(compressed);
  const auto written = inflater.read({memory.get(), length});
  const bool whole = written && *written == length && inflater.member_ended();
  if (whole && inflater.unread() == 0) return Bytes(memory, {memory.get(), length});
  const auto members = inflate_members(compressed);
  if (!members) return damaged;
  return Bytes::copy_of(*members);
}

#else

Result<Bytes> gunzip(std::span<const std::uint8_t>, const std::string& name) {
  return invalid(name + " is gzipped, and this fettle-trainer was built without zlib; gunzip it");
}

#endif

}  // namespace fettle::trainer
