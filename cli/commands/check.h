// Reading a study file for a command that needs valid Studies.
#pragma once

#include <optional>
#include <string>

#include "api/yaml/study_file.h"

namespace fettle::cli {

// Why a Study cannot run on this machine, or on a cluster; absent: it can, as far as the document
// shows. What a cluster has to offer, only its API server knows.
struct Refusals {
  std::optional<std::string> local;
  std::optional<std::string> cluster;
};
Refusals refusals_of(const api::Study& study);

// Where a Study must be able to run.
enum class Runs { kLocally, kOnCluster, kAnywhere };

// Reads and checks `path` ("-" = standard input): the document, the search that it asks for, and
// whether it can run there. Diagnostics are all there are; studies are those without one.
api::LoadedFile check_study_file(const std::string& path, Runs runs);

}  // namespace fettle::cli
