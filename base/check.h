// CHECK: for conditions that are false only if the program is wrong. Kept in release builds.
// Failures at run time (input, files, processes) are a Result<T> instead (result.h).
// Thread-safe.
#pragma once

#include <string_view>

namespace fettle {

// Prints "file:line: CHECK failed: condition: message" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace fettle

#define CHECK(condition, message) \
  ((condition) ? (void)0 : ::fettle::check_failed(__FILE__, __LINE__, #condition, message))
