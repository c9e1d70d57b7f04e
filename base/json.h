// Json: a JSON value (RFC 8259), a parser that reports line and column, and a writer.
//
// Invariants: an object keeps the order in which its members were added and never holds a key
// twice. 1 and 1.0 are one number: equality compares numbers by value and objects without regard to
// order. Numbers that fit std::int64_t are kept as integers. dump() writes doubles with the fewest
// digits that read back as the same value, and non-finite doubles as null. A value type: safe to
// share between threads as long as none of them changes it.
//
// No library, because the trainer builds with nothing but a compiler (docs/decisions/0001).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fettle {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;
  enum class Type { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Json() = default;
  // Special members and large constructors are defined in json.cpp: every file that holds a Json
  // would compile its own copy of them (docs/decisions/0027).
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  Json(std::nullptr_t) {}                                        // NOLINT: implicit
  Json(bool value) : value_(value) {}                            // NOLINT: implicit
  Json(int value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT: implicit
  Json(std::int64_t value) : value_(value) {}                    // NOLINT: implicit
  Json(std::uint64_t value);                                     // NOLINT: implicit
  Json(double value) : value_(value) {}                          // NOLINT: implicit
  Json(const char* value);                                       // NOLINT: implicit
  Json(std::string value);                                       // NOLINT: implicit
  Json(std::string_view value);                                  // NOLINT: implicit
  Json(Array value);                                             // NOLINT: implicit
  // Null if the optional is empty.
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}  // NOLINT: implicit
  static Json array();
  // An array of `to_json`'s results for the items; without it, of the items.
  template <class Items, class ToJson = std::identity>
  static Json array_of(const Items& items, ToJson to_json = {}) {
    Array out;
    for (const auto& item : items) out.push_back(std::invoke(to_json, item));
    return out;
  }
  static Json object();
  static Json object(std::initializer_list<Member> members);

  Type type() const;
  // "null", "boolean", "number", "string", "array", "object": for error messages.
  std::string_view type_name() const;

  bool is_null() const { return type() == Type::kNull; }
  bool is_boolean() const { return type() == Type::kBoolean; }
  bool is_number() const { return type() == Type::kNumber; }
  // A number with an integral value that fits int64: 3, 3.0, 3e0.
  bool is_integer() const;
  bool is_string() const { return type() == Type::kString; }
  bool is_array() const { return type() == Type::kArray; }
  bool is_object() const { return type() == Type::kObject; }

  // Each requires the matching type (CHECK).
  bool as_boolean() const;
  double as_double() const;
  std::int64_t as_integer() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  Array& as_array();
  const Object& as_object() const;
  Object& as_object();

  // The member of an object; nullptr if it does not exist or this is not an object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  // Sets a member, replacing one of the same key. Turns null into an object. Returns *this.
  Json& set(std::string_view key, Json value);
  void erase(std::string_view key);
  // Appends to an array. Turns null into an array.
  void push_back(Json value);

  // Compact on one line, or indented by `indent` spaces.
  std::string dump(int indent = 0) const;

  friend bool operator==(const Json& a, const Json& b);

 private:
  struct Members {
    Object list;
  };
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Members> value_;
};

struct JsonParseOptions {
  int max_depth = 64;
  // Accepts the forms in which programs print non-finite numbers: NaN, -nan, nan(ind), inf,
  // Infinity, 1e400.
  bool allow_non_finite = false;
};

// Parses one whole JSON text. Errors name line, column and the expected token. A duplicate key in
// an object, a number outside the range of a double and anything after the value are errors.
Result<Json> parse_json(std::string_view text, const JsonParseOptions& options = {});

}  // namespace fettle
