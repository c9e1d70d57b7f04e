// FieldErrors: collects what is wrong with a document. All of it, not the first; but a report of
// ten thousand lines helps nobody, so it is cut at kMaxErrors. Not synchronised.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/field.h"
#include "api/field_error.h"

namespace fettle::api {

inline constexpr std::size_t kMaxErrors = 50;

// What a field that is not in the lists is. In a file that a person wrote it is a mistake. In an
// object that the API server stores it may come from a newer version, whose schema has already
// filled in its default, so it says nothing about the rest. In a local store nothing but fettle
// has checked the values: there what another version took within its bounds is read as it is.
enum class UnknownFields { kMistakes, kIgnored, kIgnoredWithBounds };

// How documents spell the names of fields: as in the field lists (startupTrials), or with
// underscores (startup_trials).
enum class Spelling { kCamelCase, kSnakeCase };

class FieldErrors {
 public:
  explicit FieldErrors(UnknownFields unknown = UnknownFields::kMistakes,
                       Spelling spelling = Spelling::kCamelCase)
      : unknown_(unknown), spelling_(spelling) {}

  // A name of a field list as this document spells it; lives as long as this object and `name`.
  std::string_view spelt(std::string_view name);

  UnknownFields unknown_fields() const { return unknown_; }
  bool checks_bounds() const { return unknown_ != UnknownFields::kIgnoredWithBounds; }
  void add(const FieldPath& path, std::string message) { add(path.str(), std::move(message)); }
  void add(std::string path, std::string message);

  bool empty() const { return errors_.empty(); }
  std::size_t size() const { return errors_.size(); }
  // Whether something is wrong at `path` or inside it: checks across fields then keep quiet.
  bool any_under(const FieldPath& path) const;

  // The first kMaxErrors, then one that says how many more there are.
  std::vector<FieldError> take() &&;

 private:
  UnknownFields unknown_;
  Spelling spelling_;
  std::map<std::string_view, std::string> spelt_;  // what spelt() has made
  std::vector<FieldError> errors_;
};

}  // namespace fettle::api
