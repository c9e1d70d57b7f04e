// The file that spec.warmStart.results names becomes spec.warmStart.known of the Study, so that a
// Study holds all that its search begins with, here and on a cluster.
#pragma once

#include <string>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

// Reads the file, whose path is relative to `folder`, into the study and its document. Returns a
// sentence if not all results are kept, else "". Does nothing without spec.warmStart.results.
// kInvalid: the file is missing or has a bad line; the study has known results, too.
Result<std::string> read_results(const std::string& folder, api::Study& study, Json& document);

// Takes the known results of the stored Study instead, if it began with the same file: that may
// have changed, or be gone. False: it did not.
bool keep_results(const api::Study& stored, api::Study& study, Json& document);

}  // namespace fettle::cli
