// The training of one trial, as a process of its own and each slot of a worker do it: its reports,
// its claim to the checkpoints, and its exit code.
//
// Each call serves one trial; usable from several threads for different trials.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "trainer/elastic_training.h"
#include "trainer/program/process_task.h"
#include "trainer/reporter/report_sink.h"
#include "trainer/reporter/tensorboard.h"
#include "trainer/training.h"

namespace fettle::trainer {

// The surroundings of a trial: where its lines go, and who stops it.
struct TrialHost {
  std::function<void(const std::string&)> print;  // a line for programs
  std::size_t longest_line = 0;                   // a longer one says less; 0: any length
  std::function<void(const std::string&)> log;    // a line for people
  std::function<bool()> is_stopped;
  std::function<void()> stop;  // a report sink asks for it
  std::string pod;             // FETTLE_POD_UID: names this process to others; "" = none
  std::string tensorboard;     // FETTLE_TENSORBOARD: the root of event files; "" = none
};

// Receivers of the reports besides standard output; both may be null.
struct Reporting {
  std::unique_ptr<ReportSink> sink;
  std::unique_ptr<TensorBoardFile> scalars;
  bool says_that_it_waits = false;
};

Result<Reporting> open_reporting(const ProcessTask& process, const TrialHost& host);

// `reporting` and `trace`, which may be null, must outlive the hooks.
TrainingHooks make_hooks(Reporting& reporting, const TrialHost& host, Trace* trace);

// Claims before reading, so that no other process writes a newer checkpoint afterwards.
Status claim_checkpoints(const ProcessTask& process, const TrialHost& host, TrainingTask& task);

// kUnavailable means that other workers are missing: any other shortage, such as disk space, is
// this process's failure.
template <class T>
Result<T> of_this_process(Result<T> result) {
  if (result.ok() || result.error().code != ErrorCode::kUnavailable) return result;
  return io_error(result.error().message);
}

// Explains, on standard error, a SIGBUS that ends this process.
void explain_bus_errors();

// Says how the training ended, and returns the exit code; `signal`: for one that was stopped.
int exit_code_of(const Result<TrainingResult>& trained, const TrialHost& host, int signal);

}  // namespace fettle::trainer
