// Result<T>: either a value or a human-readable Error.
//
// Functions that can fail for reasons outside the program return Result<T> (or Status without a
// value). Reading value() of a failed Result is a programming error and aborts.
// Not synchronised: like a std::variant.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace fettle {

// The kind of an error, by the caller's options. The message has the details.
enum class ErrorCode {
  kInvalid,        // the input is wrong: report it to the user (exit code 2)
  kNotFound,       // no such object or file
  kAlreadyExists,  // the write would have duplicated something; the first one stands
  kConflict,       // resourceVersion is stale: read again and plan again
  kForbidden,      // not permitted: rights, quota, admission
  kUnavailable,    // held by another process, or temporarily unavailable
  kIo,             // the environment failed: disk, permissions, processes (exit code 3)
};

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;

  // The same error with "where: " before its message.
  Error in(const std::string& where) && { return {code, where + ": " + message}; }
};

inline Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }
inline Error not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
inline Error io_error(std::string message) { return {ErrorCode::kIo, std::move(message)}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  T& value() & {
    CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok(), error_text());
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const {
    CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  const char* error_text() const { return ok() ? "" : std::get<1>(state_).message.c_str(); }

  std::variant<T, Error> state_;
};

// A Result without a value: success() or an Error.
struct Success {};
using Status = Result<Success>;
inline Status success() { return Success{}; }

}  // namespace fettle

// Returns the error of `expression` (a Result or Status), if it has one, from the enclosing
// function.
#define FETTLE_TRY(expression)                                \
  do {                                                        \
    if (auto fettle_try_ = (expression); !fettle_try_.ok()) { \
      return fettle_try_.error();                             \
    }                                                         \
  } while (false)

#define FETTLE_CONCAT_INNER(a, b) a##b
#define FETTLE_CONCAT(a, b) FETTLE_CONCAT_INNER(a, b)

// FETTLE_ASSIGN(auto x, f()): declares x from the value of f(), or returns f()'s error.
#define FETTLE_ASSIGN(declaration, expression)                 \
  auto FETTLE_CONCAT(fettle_result_, __LINE__) = (expression); \
  if (!FETTLE_CONCAT(fettle_result_, __LINE__).ok()) {         \
    return FETTLE_CONCAT(fettle_result_, __LINE__).error();    \
  }                                                            \
  declaration = std::move(FETTLE_CONCAT(fettle_result_, __LINE__)).value()
