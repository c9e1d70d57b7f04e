// fettle run --on cluster: applies a Study and follows it.
#pragma once

#include <string>

#include "api/study/study.h"
#include "base/result.h"
#include "cli/cluster/cluster.h"
#include "cli/common/commands.h"

namespace fettle::cli {

// `document` is the study as in its file. Returns the exit code (exit_code.h): of the study, or
// kExitInterrupted if a signal came first.
Result<int> run_on_cluster(const Target& place, const RunOptions& options, api::Study study,
                           Json document);

// Applies the Study by server-side apply as manager fettle-cli, into `cluster.ns`. kInvalid and
// other errors have the API server's message, one cause a line.
Status apply_study(const Cluster& cluster, Json document);

// Tells a person what to do next with a study that is no longer followed.
std::string next_commands(const Cluster& cluster, const std::string& study);

}  // namespace fettle::cli
