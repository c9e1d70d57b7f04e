// Pruning: bounds what the runs of finished Studies occupy on the disk.
//
// A run directory holds the trial file, the log and the outcome. Decisions rest on the database and
// training on the checkpoints; neither is touched.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/local/store/layout.h"

namespace fettle::local {

// Bytes that the runs of a finished Study may keep, and again as many for all Studies that
// `--fresh` moved aside under its name.
inline constexpr std::int64_t kMostRunBytes = std::int64_t{1} << 30;

struct Pruned {
  std::int64_t runs = 0;
  std::int64_t bytes = 0;
};

// Removes run directories below `study_directories`, the least recently written first, until the
// files of the others are at most `most` bytes. Directories in `keep` stay in any case. Nothing may
// run meanwhile. Directories that cannot be removed stay, and are not counted.
Pruned prune_runs(const std::vector<std::string>& study_directories, std::int64_t most,
                  const std::set<std::string>& keep = {});

// The directories of Studies of that name that were moved aside: <root>/.old/<study>-<n>/<study>.
std::vector<std::string> directories_aside(const Layout& layout);

}  // namespace fettle::local
