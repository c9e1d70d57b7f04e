// Which trial and run a Job or a pod belongs to, by its labels and owner references.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/trial.h"
#include "base/result.h"
#include "kube/objects.h"
#include "kube/resource.h"
#include "runtime/kubernetes/refusals.h"

namespace fettle::kubernetes {

kube::ObjectKey key_of(const api::Metadata& metadata);

// Index keys of the two caches: the Jobs of a trial, the pods of a Job.
std::string trial_group(const std::string& ns, const std::string& trial);
std::string pod_group(const kube::Job& job);
std::string group_of(const kube::Job& job);
std::string group_of(const kube::Pod& pod);

bool is_owned_by(const kube::Job& job, const api::Trial& trial);
RunName name_of(const api::Trial& trial, std::int64_t run);
// The run that a Job is.
RunName run_of(const kube::Job& job);
// The trial's record of the run; null while there is none.
const api::RunRecord* find_record(const api::Trial& trial, std::int64_t run);

bool has_ended(const kube::Job& job);

// Turns kNotFound and kConflict into success: for a write whose object is gone, or was replaced by
// another of the same name, nothing is left to do.
Status unless_gone(Status done);

}  // namespace fettle::kubernetes
