// Reading what is kept of a study on disk, for the commands that only look: while it runs, after it
// ended, and after its runner was killed.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cli/view.h"
#include "runtime/local/layout.h"

namespace fettle::cli {

struct RecordedStudy {
  local::Layout layout;
  RunView view;  // happenings: the newest recorded events; of an interrupted study as it was then
  std::int64_t now_ms = 0;  // the wall clock
};

// kNotFound names the studies there are; kIo: the store cannot be read.
Result<RecordedStudy> read_recorded_study(const std::string& root, const std::string& name);

// "no study 'digts' in .fettle; there are: digits, shell"
Error no_such_study(const std::string& root, const std::string& name);

}  // namespace fettle::cli
