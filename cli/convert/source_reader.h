// SourceReader: reads the fields of a foreign document, and collects its errors and losses.
//
// A field of the wrong type is an error with its path, and reads as absent, so that one look finds
// all mistakes. Not synchronised; no IO.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/convert/conversion.h"

namespace fettle::cli {

// A place in a document, whether or not it holds something.
struct Source {
  const Json* value = nullptr;  // nullptr: absent
  std::string path;

  bool present() const { return value != nullptr && !value->is_null(); }
  Source member(std::string_view name) const;
  Source item(std::size_t index) const;
};

class SourceReader {
 public:
  // An error: there will be no Study. At most kMostErrors are kept.
  void fail(const Source& at, std::string message);
  // A loss. `target` is the field of the Study that it concerns.
  void note(const Source& at, std::string target, std::string text);

  // Each is empty for an absent field, and for one of a wrong type, which is an error.
  std::optional<std::string> text(const Source& at);  // numbers and booleans as their text
  std::optional<double> number(const Source& at);     // also as a text, "0.1"
  std::optional<std::int64_t> whole(const Source& at, std::int64_t least, std::int64_t most);
  std::vector<Source> items(const Source& at);
  bool is_map(const Source& at);

  // Notes every member of the map that is not among `known`: it is lost.
  void lose_others(const Source& map, std::initializer_list<std::string_view> known,
                   const std::string& target);

  bool failed() const { return !out_.errors.empty(); }
  // Ends the reading.
  Conversion take(Json study);

 private:
  void expect(const Source& at, std::string_view expected);

  Conversion out_;
};

}  // namespace fettle::cli
