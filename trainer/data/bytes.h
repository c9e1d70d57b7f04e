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

bool is_gzip(std::span<const std::uint8_t> bytes);

// The most that an uncompressed file may announce to hold.
inline constexpr std::int64_t kMaxDataBytes = std::int64_t{8} << 30;

// Decompresses one gzip member (RFC 1952). `name` is for messages. Errors: damaged or cut short;
// content of 4 GiB or more, whose size the format cannot tell; a build without zlib.
Result<Bytes> gunzip(std::span<const std::uint8_t> compressed, const std::string& name);

}  // namespace fettle::trainer
