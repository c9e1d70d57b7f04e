// Small files, read and written whole. Errors name the file and say what the system said.
// kUnavailable: there is no room on the disk, or a quota is used up; try again when there is.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle {

// The whole file; kNotFound where there is none, kInvalid where it is larger than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most = 64 << 20);

// Whether the bytes must be on the disk when the call returns (after a loss of power), or only
// visible to every other process (after the death of this one).
enum class Durability { kProcess, kPower };

// Replaces `path` in one step: readers see the old bytes or the new ones, never a part.
Status write_file(const std::string& path, std::string_view content,
                  Durability durability = Durability::kProcess);

// Makes the directory and its parents.
Status make_directories(const std::string& path);

// "No space left on device" and its like, for errno `code`.
std::string system_message(int code);

// Whether errno `code` says that a write found no room.
bool is_no_room(int code);

}  // namespace fettle
