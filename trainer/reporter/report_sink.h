// ReportSink: delivers a trial's reports beyond standard output, and brings back stop requests. The
// available sinks are decided when the program is linked: kubernetes_report_sink.cpp
// knows Kubernetes, no_report_sink.cpp needs only a compiler.
//
// Called from the training's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/trial/trial_file.h"
#include "base/result.h"
#include "trainer/reporter/training_report.h"

namespace fettle::trainer {

class ReportSink {
 public:
  virtual ~ReportSink() = default;

  // Returns at once; the newest report is delivered as soon as possible.
  virtual void submit(const EpochReport& report) = 0;
  // Reports that the training cannot begin yet; the next report ends this state.
  virtual void submit_waiting(const std::string& waits_for) = 0;
  // Whether the trial was asked to stop, as SIGTERM asks. Cheap enough for every step.
  virtual bool stop_wanted() const = 0;
  // Called after the last report: waits until it is delivered, at most for the trial's grace
  // period, or half of it if `stopped`, because the checkpoint took its share.
  virtual void finish(bool stopped) = 0;
};

// Lines for people; called from any thread.
using ReportSinkLog = std::function<void(const std::string&)>;

// The sink that the environment variable FETTLE_REPORT names; null if it is unset or empty.
// kInvalid: no such sink, or not in this build. kIo: it cannot be set up.
Result<std::unique_ptr<ReportSink>> make_report_sink(const api::TrialFile& trial,
                                                     ReportSinkLog log);

}  // namespace fettle::trainer
