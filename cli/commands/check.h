// check_study_file(): reads a study file for a command that needs valid Studies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/yaml/study_file.h"

namespace fettle::cli {

// The place in which a Study must be able to run.
enum class Runs { kLocally, kOnCluster, kAnywhere };

// Why a Study cannot run on this machine, or on a cluster. Absent: it can, according to the
// document, or was not checked. Only its API server knows the resources of a cluster.
struct Refusals {
  std::optional<std::string> local;
  std::optional<std::string> cluster;
};

struct CheckedFile : api::LoadedFile {
  std::vector<Refusals> refusals;  // of each Study, for Runs::kAnywhere
};

// Reads and checks `path` ("-" = standard input): the document, its search, and whether it can run
// there. Returns all diagnostics, but only Studies without one. Warnings are about these Studies.
CheckedFile check_study_file(const std::string& path, Runs runs);

// The same for a text that diagnostics name `path`; local trials would start in `folder`.
CheckedFile check_study_text(std::string_view text, const std::string& path,
                             const std::string& folder, Runs runs);

// Reads standard input, but only so far that a text above the limit of a study file shows.
std::string read_input();

// Prints the file's warnings on standard error.
void print_warnings(const CheckedFile& file);

}  // namespace fettle::cli
