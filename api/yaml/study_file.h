// Study files: YAML as people write it, read into Studies with every error placed in the file.
//
// Scalars mean what kubectl makes of them (yaml_reader.h). A file may hold several documents, each
// a Study. Reads the file, otherwise pure; usable from any thread. Nothing here throws.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/study.h"
#include "base/json.h"

namespace fettle::api {

// Larger files are refused: what a cluster stores of an object is limited to about as much.
inline constexpr std::size_t kMaxStudyFileBytes = 1'000'000;
inline constexpr std::size_t kMaxStudiesPerFile = 100;

// Something wrong with a file. `line` and `column` count from 1; 0 = the file as a whole.
struct Diagnostic {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;  // "spec.parameters[2].min", or ""
  std::string message;
  bool operator==(const Diagnostic&) const = default;
};

struct LoadedFile {
  std::vector<Study> studies;           // those without an error
  std::vector<Json> documents;          // of each of them, as it was written
  std::vector<Diagnostic> diagnostics;  // empty = all is well
  std::vector<Diagnostic> warnings;     // valid, but perhaps not as it was meant
};

LoadedFile load_study_file(const std::string& path);
// The same from memory; `file` is what diagnostics call it.
LoadedFile load_study_text(std::string_view text, const std::string& file);

// "study.yaml:12:15: spec.parameters[2].min: found 5, expected ..."
std::string to_string(const Diagnostic& diagnostic);

}  // namespace fettle::api
