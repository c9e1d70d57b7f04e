// Logs stop growing before a disk is full, so that results still fit. Pure, but for
// has_room_for_log, which asks the file system. Thread-safe.
#pragma once

#include <cstdint>

namespace fettle::local {

// Bytes that logs leave free; on a small disk, a twentieth of it.
inline constexpr std::int64_t kRoomForResults = 32 << 20;

// Bytes that logs leave free on a disk of `total` bytes.
constexpr std::int64_t room_for_results(std::int64_t total) {
  return total / 20 < kRoomForResults ? total / 20 : kRoomForResults;
}

// Whether `bytes` more may be written to the log `fd`. True if the file system does not say.
bool has_room_for_log(int fd, std::int64_t bytes);

}  // namespace fettle::local
