// Reading a study file for a command that needs valid Studies.
#pragma once

#include <string>
#include <vector>

#include "api/yaml/study_file.h"

namespace fettle::cli {

// Reads and checks `path` ("-" = standard input): the document, the search that it asks for and,
// unless trials run on a cluster, what this machine can run of it. Diagnostics are all there are;
// studies are those without one.
api::LoadedFile check_study_file(const std::string& path, bool on_cluster);

}  // namespace fettle::cli
