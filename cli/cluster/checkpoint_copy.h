// Copies the checkpoints of a trial from the volume that its pods mount to this machine: a pod
// mounts the volume for as long as that takes, and kubectl cp reads from it.
#pragma once

#include <functional>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/cluster/cluster.h"

namespace fettle::cli {

// The pod that mounts the volume, read-only: a copy of the trial's pod without its program, GPUs
// and rights. `image`: has sleep and tar; "" = the trial's own. The Trial owns it. Pure.
// kInvalid: the Study keeps no checkpoints beyond its pods.
Result<Json> checkpoint_pod(const api::Study& study, const api::Trial& trial,
                            const std::string& image);

// Receives the name of a running pod.
using UsePod = std::function<Status(const std::string& pod)>;

// Lends that pod to `use`, and deletes it whatever happens. Says on standard error why it waits;
// Ctrl-C ends the wait. Errors: checkpoint_pod()'s and use()'s; kUnavailable, the pod does not
// start.
Status with_checkpoint_pod(const Cluster& cluster, const api::Study& study, const api::Trial& trial,
                           const std::string& image, const UsePod& use);

// Copies the trial's folder of checkpoints to `to`, which must not exist yet. Errors:
// with_checkpoint_pod()'s; kNotFound, there is no kubectl, or the trial has no checkpoint; kIo,
// kubectl cp failed.
Status copy_from_volume(const Cluster& cluster, const api::Study& study, const api::Trial& trial,
                        const std::string& image, const std::string& to);

}  // namespace fettle::cli
