// The last of a disk is for results: what can do without, the logs of trials, stops before it.
// Pure but for has_room_for_log, which asks the file system. Thread-safe.
#pragma once

#include <cstdint>

namespace fettle::local {

// Logs leave so much free, of a small disk a twentieth.
inline constexpr std::int64_t kRoomForResults = 32 << 20;

// Bytes of a disk of `total` that logs leave free.
constexpr std::int64_t room_for_results(std::int64_t total) {
  return total / 20 < kRoomForResults ? total / 20 : kRoomForResults;
}

// Whether `bytes` more may be written to the log `fd`. A file system that does not say has room.
bool has_room_for_log(int fd, std::int64_t bytes);

}  // namespace fettle::local
