// Bytes: read-only bytes with a shared owner (heap memory or a mapped file), and their two sources:
// a file and a gzip stream.
// Safe to share between threads: no thread changes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace fettle::trainer {

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, std::span<const std::uint8_t> view)
      : owner_(std::move(owner)), view_(view) {}

  // Makes a copy; for data made in memory.
  static Bytes copy_of(std::span<const std::uint8_t> from);

  std::span<const std::uint8_t> view() const { return view_; }
  std::size_t size() const { return view_.size(); }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::uint8_t> view_;
};

// Maps a regular file. The mapping is private and read-only, so trials share its pages.
// Errors: missing, unreadable, not a regular file; each names the file.
Result<Bytes> map_file(const std::string& path);

// A mapped file, which detects later writes to it. A file replaced by rename stays mapped as it
// was.
class MappedFile {
 public:
  // Opens and maps as map_file().
  static Result<MappedFile> open(const std::string& path);

  const Bytes& bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  bool holds(const void* address) const;

  // The change since opening: "was written to", "has 7 bytes instead of 400"; "" if there was no
  // change.
  std::string change() const;
  // Whether all its bytes can be read, judged by its size.
  bool is_whole() const;
  // Makes the file's present state the one that change() compares with.
  void accept();

 private:
  struct State {
    std::int64_t size = 0;
    std::int64_t seconds = 0;  // of its modification
    std::int64_t nanoseconds = 0;
    bool operator==(const State&) const = default;
  };
  MappedFile(std::string path, std::shared_ptr<const int> file, const State& state, Bytes bytes)
      : path_(std::move(path)), file_(std::move(file)), state_(state), bytes_(std::move(bytes)) {}
  static Result<State> state_of(int file);

  std::string path_;
  std::shared_ptr<const int> file_;  // descriptor, closed with the last copy
  State state_;
  Bytes bytes_;
};

bool is_gzip(std::span<const std::uint8_t> bytes);

// Limit on the size that an uncompressed file may announce.
inline constexpr std::int64_t kMaxDataBytes = std::int64_t{8} << 30;

// Decompresses all members of a gzip file (RFC 1952), usually one. `name` is for messages. Errors:
// damaged or truncated; content of 4 GiB or more, a size that the format cannot express; a build
// without zlib.
Result<Bytes> gunzip(std::span<const std::uint8_t> compressed, const std::string& name);

// CRC-32 and length of the last member's content, from its trailer. 0 without a trailer.
struct GzipTrailer {
  std::uint32_t crc = 0;
  std::uint32_t length = 0;  // modulo 2^32
};
GzipTrailer gzip_trailer(std::span<const std::uint8_t> compressed);

}  // namespace fettle::trainer
