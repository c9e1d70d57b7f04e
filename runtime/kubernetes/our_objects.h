// Whose a Job or a pod is, by its labels and owners. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/trial.h"
#include "base/result.h"
#include "kube/objects.h"
#include "kube/resource.h"
#include "runtime/kubernetes/refusals.h"

namespace fettle::kubernetes {

// "" where there is none.
std::string label_of(const api::Metadata& metadata, const char* label);
kube::ObjectKey key_of(const api::Metadata& metadata);

// The groups of the two caches: the Jobs of a trial, the pods of a Job.
std::string trial_group(const std::string& ns, const std::string& trial);
std::string group_of(const kube::Job& job);
std::string group_of(const kube::Pod& pod);

bool is_owned_by(const kube::Job& job, const api::Trial& trial);
RunName name_of(const api::Trial& trial, std::int64_t run);
// The run that a Job of ours is.
RunName run_of(const kube::Job& job);

bool has_ended(const kube::Job& job);

// Of a write to an object: that it has gone, or another one has its name, is no error, for what was
// to be done to it is done.
Status unless_gone(Status done);

}  // namespace fettle::kubernetes
