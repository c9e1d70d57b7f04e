// Field lists: each struct of this folder declares once which fields its document has.
//
// Every struct has one function, in study_fields.h, trial_fields.h or trainer_fields.h:
//
//   template <class Visitor, Like<Budget> B>
//   void visit_fields(Visitor& v, B& budget) {
//     v.field("trials", budget.trials, "Number of trials to create at most.", whole(1, 1'000'000));
//     ...
//   }
//
// Every generic operation is a visitor over that list: reading with errors (field_reader.h),
// writing (field_writer.h), writing one field by path (field_setter.h), and comparing the list with
// the cluster's schema. Fields are visited in order, so rules may depend on earlier fields
// (`only_if`). Everything here is a value or a pure function; usable from any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json.h"

namespace fettle::api {

// T or const T: field lists serve readers and writers alike.
template <class T, class Struct>
concept Like = std::same_as<std::remove_const_t<T>, Struct>;

// How a value is written in a document, beyond what its C++ type says.
enum class Form {
  kPlain,
  kDuration,         // double, seconds: "90s", "2h" or a number
  kQuantity,         // double: "20Gi" or a number
  kTimestamp,        // int64, Unix milliseconds: RFC 3339; 0 is left out
  kConditionStatus,  // bool: "True" or "False"
  kDnsLabel,         // text: lower-case letters, digits and '-'
  kName,             // text: a letter, then letters, digits, '_', '.', '-'
  kVariableName,     // text: a letter or '_', then letters, digits and '_'
  kMetricName,       // text: letters, digits and _ . / : @ % -
  kLabelKey,         // text: as the keys of Kubernetes' labels (label_syntax.h)
  kLabelValue,       // text: as their values
  kDnsSubdomain,     // text: DNS labels with '.' between them
  kObject,           // Json: an object
  kScalar,           // Json: a string, number or boolean
  kAnyNumber,        // double: any, null stands for NaN
};

// Bounds of this size only keep differences of numbers finite; messages call them "finite".
inline constexpr double kLargestBound = 1e300;

// Bounds of one field. Built by the functions below; all sizes are inclusive.
struct FieldRules {
  Form form = Form::kPlain;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is refused
  bool below_max = false;  // max itself is refused
  bool odd = false;
  bool or_auto = false;             // numbers: the text auto is accepted, too (kAutoAmount)
  bool largest_is_hardest = false;  // numbers: the largest is hardest to fit with other fields
  bool label_keys = false;          // maps: keys must be label keys
  std::size_t min_size = 0;         // lists and maps: entries
  std::size_t max_size = 64;
  std::size_t min_text = 0;  // strings, also inside lists: bytes
  std::size_t max_text = 256;
  std::span<const std::string_view> choices{};  // strings: the accepted values
  bool required = false;
  bool applies = true;            // given the fields read so far
  std::string_view applies_to{};  // "type Double or Integer": the condition, for messages
  bool cut = false;               // text for people: the writer shortens it to fit

  // Makes the field required (where it applies).
  FieldRules needed() const { return with(&FieldRules::required, true); }
  // Restricts the field to documents in which `condition` holds; `when` says so in words.
  FieldRules only_if(bool condition, std::string_view when) const {
    return with(&FieldRules::applies, condition).with(&FieldRules::applies_to, when);
  }
  FieldRules only_odd(bool condition = true) const { return with(&FieldRules::odd, condition); }
  // Accepts the text auto, too: the amount is chosen for the user.
  FieldRules or_chosen() const { return with(&FieldRules::or_auto, true); }
  FieldRules hardest_at_max() const { return with(&FieldRules::largest_is_hardest, true); }
  FieldRules as(Form new_form) const { return with(&FieldRules::form, new_form); }
  // Requires keys of labels.
  FieldRules by_label() const { return with(&FieldRules::label_keys, true); }
  // Limits entries (keys, in maps of numbers) to strings of at most `bytes`.
  FieldRules of_text(std::size_t bytes) const { return with(&FieldRules::max_text, bytes); }

  // Returns a copy of the rules with one member changed.
  template <class T>
  FieldRules with(T FieldRules::*member, std::type_identity_t<T> value) const {
    FieldRules copy = *this;
    copy.*member = value;
    return copy;
  }
};

inline FieldRules number(double min, double max) { return {.min = min, .max = max}; }
// The integer type of the member makes the number whole; the rule is that of any number.
inline FieldRules whole(std::int64_t min, std::int64_t max) {
  return number(static_cast<double>(min), static_cast<double>(max));
}
inline FieldRules above(double min, double max) {
  return {.min = min, .max = max, .above_min = true};
}
inline FieldRules from_to_below(double min, double max) {
  return {.min = min, .max = max, .below_max = true};
}
inline FieldRules text(std::size_t min, std::size_t max) {
  return {.min_text = min, .max_text = max};
}
inline FieldRules message_text(std::size_t max) { return {.max_text = max, .cut = true}; }
inline FieldRules one_of(std::span<const std::string_view> choices) { return {.choices = choices}; }
inline FieldRules list(std::size_t min, std::size_t max) {
  return {.min_size = min, .max_size = max};
}
inline FieldRules timestamp() {
  return number(0, 253402300799999.0).as(Form::kTimestamp);  // until the year 9999
}

// A place in a document: a chain on the stack, spelt out only for errors. A child must not outlive
// its parent.
class FieldPath {
 public:
  FieldPath() = default;
  explicit FieldPath(std::string_view root) : name_(root) {}
  FieldPath member(std::string_view name) const { return FieldPath(this, name, kNoIndex); }
  FieldPath item(std::size_t index) const { return FieldPath(this, {}, index); }

  // "spec.parameters[2].min"
  std::string str() const;

 private:
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);
  FieldPath(const FieldPath* parent, std::string_view name, std::size_t index)
      : parent_(parent), name_(name), index_(index) {}

  const FieldPath* parent_ = nullptr;
  std::string_view name_;
  std::size_t index_ = kNoIndex;
};

// Describes a value for a message: `"adm"`, `3.5`, `a list of 3`; long strings are cut.
std::string describe(const Json& value);
// "0.001", "3": the fewest digits that read back as the same value.
std::string describe(double value);

// Describes the values that a rule accepts: "a whole number from 1 to 1000".
std::string expected_number(const FieldRules& rules, bool is_whole);
std::string expected_text(const FieldRules& rules);

// Cuts `text` to at most `max_bytes`, between characters; NUL and invalid UTF-8 become '?'.
std::string clean_text(std::string_view text, std::size_t max_bytes);

// "a, b or c".
std::string join_names(std::span<const std::string_view> names, std::string_view last = "or");

}  // namespace fettle::api
