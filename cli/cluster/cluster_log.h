// The log of a trial's pod.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "base/result.h"
#include "cli/source/study_source.h"
#include "kube/client/client.h"

namespace fettle::cli {

struct PodLogOptions {
  std::optional<std::int64_t> run;  // absent: the newest
  bool follow = false;              // wait for the container to start, and print until it ends
  std::stop_token stop;             // of following
};

// Prints the output of the trial's container in the newest pod of rank 0. kNotFound, in words: no
// such trial, or its pods are gone; kUnavailable: the container has not started, and why.
Status print_pod_log(kube::Client& client, const kube::ObjectKey& trial,
                     const PodLogOptions& options, const LogPrinter& print);

}  // namespace fettle::cli
