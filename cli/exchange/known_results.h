// The file that spec.warmStart.results names: a known result a line (api/study/known_result.h),
// oldest first. Empty lines are skipped. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

// The limit of all known results of a Study, as JSON.
inline constexpr std::size_t kMaxKnownBytes = std::size_t{256} * 1024;

struct KnownFile {
  std::vector<Json> known;  // at most api::kMostKnownResults, in the order of the file
  std::size_t results = 0;  // in the file
};

// Reads the text of the file called `name`. If it has more results than a Study can hold, first
// results that ended early or lack an objective are left out, then all but the best half and the
// last of the others. Errors: kInvalid with name, line and reason; a file without a result.
Result<KnownFile> read_known_file(std::string_view text, const std::string& name,
                                  const std::vector<api::Objective>& objectives);

}  // namespace fettle::cli
