// Adds the log of a run to the state of its Job and pods: reports, and whether all of them are
// known. For images without a reporter. Pure; usable from any thread.
#pragma once

#include "core/plan.h"
#include "runtime/kubernetes/log/log_metrics.h"

namespace fettle::kubernetes {

struct RunOutput {
  const LogReading& reading;  // of the last known pod of rank 0
  bool has_pod = false;       // that pod exists
  bool ended = false;         // its trial has ended
  bool stop_asked = false;    // the operator asked the run to stop
};

// The record of an end is final. So a run that has exited counts as running until its log was read
// to the end, or was given up: then run.read_error says why. A run that was asked to stop does not
// wait for a log that cannot be read.
void add_output(const RunOutput& output, core::Run& run);

}  // namespace fettle::kubernetes
