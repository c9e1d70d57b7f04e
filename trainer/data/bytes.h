// Bytes: read-only bytes with a shared owner (heap memory or a mapped file), and the two ways to
// get them: from a file and out of a gzip stream.
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

  // Copies; for data made in memory.
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

// The file of a mapping, which shows whether it was written to since. One that was replaced by a
// rename stays as it was.
class MappedFile {
 public:
  // As map_file().
  static Result<MappedFile> open(const std::string& path);

  const Bytes& bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  bool holds(const void* address) const;

  // What has happened to it: "was written to", "has 7 bytes instead of 400"; "" if nothing has.
  std::string change() const;
  // Its bytes can all be read, as far as its size tells.
  bool is_whole() const;
  // What is there now is what change() compares with from now on.
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

// The most that an uncompressed file may announce to hold.
inline constexpr std::int64_t kMaxDataBytes = std::int64_t{8} << 30;

// Decompresses the members of a gzip file (RFC 1952), of which there is mostly one. `name` is for
// messages. Errors: damaged or cut short; content of 4 GiB or more, whose size the format cannot
// tell; a build without zlib.
Result<Bytes> gunzip(std::span<const std::uint8_t> compressed, const std::string& name);

// What the last member's trailer says of its content: CRC-32 and length. 0 where there is none.
struct GzipTrailer {
  std::uint32_t crc = 0;
  std::uint32_t length = 0;  // modulo 2^32
};
GzipTrailer gzip_trailer(std::span<const std::uint8_t> compressed);

}  // namespace fettle::trainer
