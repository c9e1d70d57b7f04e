// The termination message: leaves the final result for the kubelet, in case the API server cannot
// be reached in time. Thread-safe.
#pragma once

#include <string>

#include "base/result.h"
#include "trainer/reporter/training_report.h"

namespace fettle::trainer {

// The report's line as on standard output, with as many metrics as api::kMaxTerminationMessage
// allows.
std::string termination_message(EpochReport report);

// Writes `message` into the file that the kubelet mounted at `path`. kNotFound if it does not
// exist: it is never created, because only the kubelet's own file is read.
Status write_termination_message(const std::string& path, const std::string& message);

}  // namespace fettle::trainer
