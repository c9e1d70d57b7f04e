// Small files, read and written whole. Errors name the file and give the system's reason.
// kUnavailable: the disk is full, or a quota is used up; retry when space is free.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle {

// The whole file; kNotFound if it does not exist, kInvalid if it is larger than `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most = 64 << 20);

// Whether the bytes must survive a loss of power once the call has returned, or only the death of
// this process.
enum class Durability { kProcess, kPower };

// Replaces `path` in one step: readers see the old bytes or the new ones, never a part.
Status write_file(const std::string& path, std::string_view content,
                  Durability durability = Durability::kProcess);

// Makes the directory and its parents.
Status make_directories(const std::string& path);

// "No space left on device" and similar texts, for errno `code`.
std::string system_message(int code);

// Whether errno `code` means that a write found no space.
bool is_no_room(int code);

}  // namespace fettle
