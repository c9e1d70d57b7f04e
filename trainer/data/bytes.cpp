#include "trainer/data/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifdef FETTLE_HAVE_ZLIB
#include <zlib.h>
#endif

namespace fettle::trainer {

namespace {

std::string system_error() { return std::strerror(errno); }

// Closes the descriptor at the end of the scope; a mapping outlives it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Bytes Bytes::copy_of(std::span<const std::uint8_t> from) {
  std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[from.size()]);
  std::copy(from.begin(), from.end(), memory.get());
  return {memory, {memory.get(), from.size()}};
}

Result<Bytes> map_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const auto code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, "cannot open " + path + ": " + system_error()};
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return io_error("cannot read " + path + ": " + system_error());
  if (!S_ISREG(info.st_mode)) return invalid(path + " is not a file");
  if (info.st_size == 0) return invalid(path + " is empty");
  const auto size = static_cast<std::size_t>(info.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return io_error("cannot map " + path + ": " + system_error());
  std::shared_ptr<const void> owner(address, [size](void* mapped) { munmap(mapped, size); });
  return Bytes(std::move(owner), {static_cast<const std::uint8_t*>(address), size});
}

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
}

#ifdef FETTLE_HAVE_ZLIB

namespace {

// Deflate shrinks by less than this, so a trailer that announces more lies; nothing that large is
// allocated because a small file says so.
constexpr std::int64_t kMaxDeflateRatio = 1032;

// The size in the last four bytes of a gzip file: modulo 2^32, so larger content does not fit it.
std::int64_t announced_size(std::span<const std::uint8_t> compressed) {
  const std::uint8_t* tail = compressed.data() + compressed.size() - 4;
  return static_cast<std::int64_t>(tail[0]) | static_cast<std::int64_t>(tail[1]) << 8 |
         static_cast<std::int64_t>(tail[2]) << 16 | static_cast<std::int64_t>(tail[3]) << 24;
}

// Inflates all of `compressed` into exactly `out`; zlib checks the CRC and the size.
bool inflate_whole(std::span<const std::uint8_t> compressed, std::span<std::uint8_t> out) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // the largest window; + 16: with gzip's header and trailer
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return false;
  stream.next_in = const_cast<std::uint8_t*>(compressed.data());
  stream.next_out = out.data();
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // zlib counts in 32 bits
  int status = Z_OK;
  while (status == Z_OK) {  // Z_BUF_ERROR once there is nothing to read, or no room to write
    const std::size_t in_left =
        compressed.size() - static_cast<std::size_t>(stream.next_in - compressed.data());
    const std::size_t out_left =
        out.size() - static_cast<std::size_t>(stream.next_out - out.data());
    stream.avail_in = static_cast<uInt>(std::min(in_left, kPiece));
    stream.avail_out = static_cast<uInt>(std::min(out_left, kPiece));
    status = inflate(&stream, Z_NO_FLUSH);
  }
  const bool whole = status == Z_STREAM_END && stream.next_out == out.data() + out.size() &&
                     stream.next_in == compressed.data() + compressed.size();
  inflateEnd(&stream);
  return whole;
}

}  // namespace

Result<Bytes> gunzip(std::span<const std::uint8_t> compressed, const std::string& name) {
  constexpr std::size_t kSmallestGzip = 18;  // header and trailer
  const Error damaged = invalid(
      name + " is a gzip file that is damaged or cut short (" + std::to_string(compressed.size()) +
      " bytes); get it again from where it came from, or gunzip it if it holds more than "
      "4 GiB");
  if (compressed.size() < kSmallestGzip) return damaged;
  const std::int64_t size = announced_size(compressed);
  if (size / kMaxDeflateRatio > static_cast<std::int64_t>(compressed.size())) return damaged;
  const auto length = static_cast<std::size_t>(size);
  // Not a vector: filling 47 MB with zeros first would cost a tenth of the start-up time.
  // One more byte, so that an empty content has an address, too.
  std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[length + 1]);
  if (!inflate_whole(compressed, {memory.get(), length})) return damaged;
  return Bytes(memory, {memory.get(), length});
}

#else

Result<Bytes> gunzip(std::span<const std::uint8_t>, const std::string& name) {
  return invalid(name + " is gzipped, and this fettle-trainer was built without zlib; gunzip it");
}

#endif

}  // namespace fettle::trainer
