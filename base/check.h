// CHECK: for what cannot go wrong unless the program is wrong. Kept in release builds.
// What can go wrong at run time (input, files, processes) is a Result<T> instead (result.h).
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
