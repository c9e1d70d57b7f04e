// What one pod says: why it waits, and how it ended. Part of run_of_job.h; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/trial.h"
#include "kube/objects.h"

namespace fettle::kubernetes {

struct PodEnd {
  api::Outcome outcome = api::Outcome::kFailed;
  std::string reason;
  std::int64_t at_ms = 0;        // 0 = unknown
  bool replaced = false;         // disrupted: the Job controller makes another
  std::optional<int> exit_code;  // where the trial ended by itself
};

// Nothing while the pod may still do something. `stop_asked`: we asked for its end.
std::optional<PodEnd> end_of_pod(const kube::Pod& pod, const std::string& container,
                                 bool stop_asked);

// What a pod waits for that does not run, when somebody must do something about it; else "".
std::string why_waiting(const kube::Pod& pod, const std::string& container, std::int64_t now_ms);

// What is said of a pod that should have ended and does not say so.
std::string why_overdue(const kube::Pod& pod);

// The last words of a container, when they are a report.
std::optional<api::Report> read_termination_message(const kube::Container& container);

}  // namespace fettle::kubernetes
