// Study files: YAML read into Studies, with the place in the file of every error.
//
// Scalars have the types that kubectl gives them (yaml_reader.h). A file may hold several
// documents, each a Study. Reads the file, otherwise pure; usable from any thread. Nothing here
// throws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"

namespace fettle::api {

// Larger files are refused: a cluster limits the size of a stored object to about this.
inline constexpr std::size_t kMaxStudyFileBytes = 1'000'000;
inline constexpr std::size_t kMaxStudiesPerFile = 100;

// An error in a file. `line` and `column` count from 1; 0 = the file as a whole.
struct Diagnostic {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;  // "spec.parameters[2].min", or ""
  std::string message;
  bool operator==(const Diagnostic&) const = default;
};

struct LoadedFile {
  std::vector<Study> studies;           // Studies without an error
  std::vector<Json> documents;          // their documents, as written
  std::vector<Diagnostic> diagnostics;  // empty = all is well
  std::vector<Diagnostic> warnings;     // valid, but perhaps not as intended
};

LoadedFile load_study_file(const std::string& path);
// The same from memory; diagnostics name it `file`.
LoadedFile load_study_text(std::string_view text, const std::string& file);

// "study.yaml:12:15: spec.parameters[2].min: found 5, expected ..."
std::string to_string(const Diagnostic& diagnostic);

}  // namespace fettle::api
