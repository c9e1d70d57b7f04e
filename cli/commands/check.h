// Reading a study file for a command that needs valid Studies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/yaml/study_file.h"

namespace fettle::cli {

// Where a Study must be able to run.
enum class Runs { kLocally, kOnCluster, kAnywhere };

// Why a Study cannot run on this machine, or on a cluster; absent: it can, as far as the document
// shows, or was not asked. What a cluster has to offer, only its API server knows.
struct Refusals {
  std::optional<std::string> local;
  std::optional<std::string> cluster;
};

struct CheckedFile : api::LoadedFile {
  std::vector<Refusals> refusals;  // of each Study, for Runs::kAnywhere
};

// Reads and checks `path` ("-" = standard input): the document, the search that it asks for, and
// whether it can run there. Diagnostics are all there are; studies are those without one.
// Warnings are of the studies.
CheckedFile check_study_file(const std::string& path, Runs runs);

// The folder of a study file, where its trials start: absolute; "" = this process's, of standard
// input.
std::string folder_of(const std::string& path);

// Says the file's warnings on standard error.
void print_warnings(const CheckedFile& file);

}  // namespace fettle::cli
