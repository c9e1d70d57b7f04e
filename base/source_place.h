// SourcePlace: the place of a function's call, like std::source_location, which clang-tidy 14 does
// not know. Usable from any thread.
#pragma once

#include <cstdint>

namespace fettle {

class SourcePlace {
 public:
  // As a default argument: the place of the call.
  static constexpr SourcePlace current(const char* file = __builtin_FILE(),
                                       unsigned line = __builtin_LINE(),
                                       const char* function = __builtin_FUNCTION()) {
    return SourcePlace(file, line, function);
  }
  constexpr SourcePlace() = default;
  constexpr const char* file_name() const { return file_; }
  constexpr std::uint32_t line() const { return line_; }
  constexpr const char* function_name() const { return function_; }

 private:
  constexpr SourcePlace(const char* file, unsigned line, const char* function)
      : file_(file), line_(line), function_(function) {}

  const char* file_ = "";
  unsigned line_ = 0;
  const char* function_ = "";
};

}  // namespace fettle
