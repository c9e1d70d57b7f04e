// FieldErrors: collects all errors of a document, not only the first; but a report of ten thousand
// lines helps nobody, so it is cut at kMaxErrors. Not synchronised.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/field.h"
#include "api/fields/field_error.h"

namespace fettle::api {

inline constexpr std::size_t kMaxErrors = 50;

// How to treat a field that is not in the lists. In a file that a person wrote it is a mistake. In
// an object of the API server it may come from a newer version, whose schema has already filled in
// its default, so it says nothing about the rest. In a local store only fettle has checked the
// values, so a value that another version accepted within its own bounds is read unchanged.
enum class UnknownFields { kMistakes, kIgnored, kIgnoredWithBounds };

// How documents spell field names: as in the field lists (startupTrials), or with underscores
// (startup_trials).
enum class Spelling { kCamelCase, kSnakeCase };

class FieldErrors {
 public:
  explicit FieldErrors(UnknownFields unknown = UnknownFields::kMistakes,
                       Spelling spelling = Spelling::kCamelCase)
      : unknown_(unknown), spelling_(spelling) {}

  // Returns `name`, of a field list, in this document's spelling; lives as long as this object and
  // `name`.
  std::string_view spelt(std::string_view name);

  UnknownFields unknown_fields() const { return unknown_; }
  bool checks_bounds() const { return unknown_ != UnknownFields::kIgnoredWithBounds; }
  void add(const FieldPath& path, std::string message) { add(path.str(), std::move(message)); }
  void add(std::string path, std::string message);

  bool empty() const { return errors_.empty(); }
  std::size_t size() const { return errors_.size(); }
  // Whether there is an error at `path` or inside it: checks across fields then skip it.
  bool any_under(const FieldPath& path) const;

  // Returns the first kMaxErrors, then one with the number of the others.
  std::vector<FieldError> take() &&;

 private:
  UnknownFields unknown_;
  Spelling spelling_;
  std::map<std::string_view, std::string> spelt_;  // texts that spelt() returned
  std::vector<FieldError> errors_;
};

}  // namespace fettle::api
