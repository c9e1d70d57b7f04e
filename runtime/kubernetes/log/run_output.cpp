#include "runtime/kubernetes/log/run_output.h"

#include <algorithm>

#include "runtime/sentences.h"

namespace fettle::kubernetes {
namespace {

using core::RunState;
using runtime::add_sentence;

bool waits_for_log(const RunOutput& output, const core::Run& run) {
  const LogReading& reading = output.reading;
  if (run.state != RunState::kExited || !output.has_pod || !output.ended) return false;
  const bool hopeless = output.stop_asked && !reading.read_error.empty();
  return !reading.complete && !hopeless;
}

// Why the reports of an exited run, or its end, are unknown; "" = both are known.
std::string why_unread(const RunOutput& output, const core::Run& run) {
  if (!output.reading.read_error.empty()) return output.reading.read_error;
  // Even if the log of a pod that is gone is known, it is not known whether it was evicted when it
  // exited.
  if (!run.read_error.empty() || output.reading.complete) return run.read_error;
  return "its pod is gone, and its log was not read to the end";
}

}  // namespace

void add_output(const RunOutput& output, core::Run& run) {
  const LogReading& reading = output.reading;
  if (output.has_pod) {
    run.seen_ms = reading.since_ms;
    run.heard_ms = std::max(run.heard_ms, reading.heard_ms);
  }
  if (waits_for_log(output, run)) {
    run.state = RunState::kRunning;
    run.outcome.reset();
    run.reason = reading.read_error;
    run.report.reset();  // written with the end, in one write
    return;
  }
  run.read_ms = reading.read_ms;
  // `run.report` comes from the termination message, if that is a report.
  const bool is_newer = reading.report && (!run.report || reading.report->step >= run.report->step);
  if (is_newer) run.report = reading.report;
  run.silence = reading.why_no_report;
  if (run.state == RunState::kRunning) run.reason = reading.read_error;
  if (run.state != RunState::kExited) return;
  run.read_error = why_unread(output, run);
  add_sentence(run.reason, reading.read_error);
  if (run.outcome == api::Outcome::kSucceeded) add_sentence(run.reason, reading.remarks);
}

}  // namespace fettle::kubernetes
