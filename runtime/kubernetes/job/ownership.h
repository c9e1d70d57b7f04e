// Finds the trial and run of a Job or a pod by its labels and owner references.
// Pure; usable from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "api/trial/trial.h"
#include "base/result.h"
#include "kube/objects/objects.h"
#include "kube/objects/resource.h"

namespace fettle::kubernetes {

// Identifies a run: the trial's namespace, name and uid, and the run's number.
struct RunName {
  std::string ns;
  std::string trial;
  std::string uid;
  std::int64_t run = 0;
  auto operator<=>(const RunName&) const = default;
};

kube::ObjectKey key_of(const api::Metadata& metadata);

// Index keys of the two caches: the Jobs of a trial, the pods of a Job.
std::string trial_group(const std::string& ns, const std::string& trial);
std::string pod_group(const kube::Job& job);
std::string group_of(const kube::Job& job);
std::string group_of(const kube::Pod& pod);

bool is_owned_by(const kube::Job& job, const api::Trial& trial);
RunName name_of(const api::Trial& trial, std::int64_t run);
// The run that the Job carries out.
RunName run_of(const kube::Job& job);
// The trial's record of the run; null if it has none yet.
const api::RunRecord* find_record(const api::Trial& trial, std::int64_t run);

bool has_ended(const kube::Job& job);

// Turns kNotFound and kConflict into success: a write whose object is gone, or was replaced by
// another of the same name, has nothing left to do.
Status unless_gone(Status done);

}  // namespace fettle::kubernetes
