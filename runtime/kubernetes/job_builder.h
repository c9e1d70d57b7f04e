// The Job of a run, and what belongs to it: pure functions from Study and Trial to Kubernetes
// objects, following the worker contract.
//
// A Job is Indexed with completions = parallelism = workers, so that both can be changed together.
// It replaces disrupted pods by itself and nothing else: every other retry is a new run. A user's
// template is kept as it is; labels, the trial file, the checkpoints and the environment are added,
// and a variable that the user sets too stays the user's. Values are data: `$` is written `$$`,
// because Kubernetes expands $(NAME) in values. Usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/study.h"
#include "api/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "kube/objects.h"

namespace fettle::kubernetes {

// Labels of Jobs, pods and Services; informers select on the trial's.
inline constexpr const char* kTrialLabel = "fettle.dev/trial";
inline constexpr const char* kRunLabel = "fettle.dev/run";
// Of a Job: which container is the trial; absent: the one named kTrainerContainer.
inline constexpr const char* kContainerAnnotation = "fettle.dev/container";
// Of a Job whose workers find each other through a headless Service: its name.
inline constexpr const char* kServiceAnnotation = "fettle.dev/service";
// Of such a Job: with how many workers it was made, which its pods go by whatever comes later; and,
// where workers may come and go, how many must be left.
inline constexpr const char* kWorkersAnnotation = "fettle.dev/workers";
inline constexpr const char* kLeastWorkersAnnotation = "fettle.dev/least-workers";
// Of a Job whose workers are kept on one node, because only one node mounts their checkpoints.
inline constexpr const char* kOneNodeAnnotation = "fettle.dev/one-node";
// Of a Job: the step it was asked to reach.
inline constexpr const char* kUntilStepAnnotation = "fettle.dev/until-step";
// Of a pod: the trial file as JSON, which the pod sees at kTrialFile.
inline constexpr const char* kTrialFileAnnotation = "fettle.dev/trial";

inline constexpr const char* kTrainerContainer = "trainer";
inline constexpr const char* kTrialFile = "/fettle/trial.json";
inline constexpr const char* kCheckpoints = "/fettle/checkpoints";
inline constexpr int kRendezvousPort = 29500;

struct JobOptions {
  std::string trainer_image;  // of the built-in trainer
  Json trainer_pod = {};      // laid over its pod (pod_patch.h); null = nothing
  // How long the workers of a trial may take until all have a node (gang.h).
  std::int64_t gang_timeout_ms = 120'000;
};

// The Service of a Job of several workers. Services may not begin with a digit before Kubernetes
// 1.36, Studies may; and no Study's Service can have the name that another's has.
std::string service_of(const std::string& job);

// An ownerReference that says "this is mine": the object goes when its owner does.
Json owner_reference(std::string_view api_version, std::string_view kind,
                     const api::Metadata& owner);

// The Job of run `run`. kInvalid, in words: it can never be, as the Study is written.
Result<Json> build_job(const api::Study& study, const api::Trial& trial, std::int64_t run,
                       const JobOptions& options);

// A pod as the Job controller would make it from `job`, for a dry run.
Json pod_of(const Json& job);

// The headless Service through which the pods of `job` find each other.
// Requires kServiceAnnotation.
Json build_service(const kube::Job& job);

}  // namespace fettle::kubernetes
