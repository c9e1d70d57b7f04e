// Why a pod waits, and how it ended. Part of run_of_job.h; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/trial/trial.h"
#include "kube/objects/objects.h"

namespace fettle::kubernetes {

struct PodEnd {
  api::Outcome outcome = api::Outcome::kFailed;
  std::string reason;
  std::int64_t at_ms = 0;                  // 0 = unknown
  bool replaced = false;                   // disrupted: the Job controller creates another
  bool presumed = false;                   // disrupted: only its exit code says so
  std::optional<int> exit_code;            // if the trial ended by itself
  std::optional<double> gpu_memory_short;  // gpu_memory_end.h
};

// Absent while the pod has not ended. `stop_asked`: the operator asked for its end.
std::optional<PodEnd> end_of_pod(const kube::Pod& pod, const std::string& container,
                                 bool stop_asked);

// Why a pod does not run, if a person must act; else "".
std::string why_waiting(const kube::Pod& pod, const std::string& container, std::int64_t now_ms);

// The reason to report for a terminating pod past its deadline (JobView::fenced).
std::string why_overdue(const kube::Pod& pod, bool fenced);

// The container's termination message, if it is a report.
std::optional<api::Report> read_termination_message(const kube::Container& container);

}  // namespace fettle::kubernetes
