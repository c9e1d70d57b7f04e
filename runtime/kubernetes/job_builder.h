// Builds the Job of a run: pure functions from Study and Trial to Kubernetes objects, following the
// worker contract.
//
// The Job is Indexed with completions = parallelism = workers, which can be changed together to
// resize it. It replaces disrupted pods and nothing else: every other retry is a new run. A user's
// template is preserved; labels, the trial file, the checkpoints and the environment are added, and
// a variable that the user sets wins. Values are data: `$` is escaped as `$$`, because Kubernetes
// expands $(NAME) in values. Usable from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/gpu_profile.h"
#include "api/study.h"
#include "api/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "kube/objects.h"
#include "runtime/kubernetes/gpu/catalogue.h"

namespace fettle::kubernetes {

// Labels of Jobs, pods and Services; informers select on kTrialLabel.
inline constexpr const char* kTrialLabel = "fettle.dev/trial";
inline constexpr const char* kRunLabel = "fettle.dev/run";
// Annotation of a Job: the name of the trial's container; absent: api::kTrialContainer.
inline constexpr const char* kContainerAnnotation = "fettle.dev/container";
// Annotations of a Job of several workers: their number at its creation, which its pods have as
// WORLD_SIZE despite later resizes; and, if it is elastic, the minimum number of workers.
inline constexpr const char* kWorkersAnnotation = "fettle.dev/workers";
inline constexpr const char* kMinWorkersAnnotation = "fettle.dev/least-workers";
// Annotation of a Job whose workers are placed on one node, because only one node can mount their
// checkpoints.
inline constexpr const char* kOneNodeAnnotation = "fettle.dev/one-node";
// Annotation of a Job: the step to train to.
inline constexpr const char* kUntilStepAnnotation = "fettle.dev/until-step";
// Annotation of a pod: the trial file as JSON, mounted at kTrialFile.
inline constexpr const char* kTrialFileAnnotation = "fettle.dev/trial";

inline constexpr const char* kTrialFile = "/fettle/trial.json";
inline constexpr const char* kCheckpoints = "/fettle/checkpoints";

struct JobOptions {
  std::string trainer_image;  // of the built-in trainer
  Json trainer_pod = {};      // patch of its pod (pod_patch.h); null = none
  // How long the workers of a gang may wait until all have a node (gang.h).
  std::int64_t gang_timeout_ms = 120'000;
  // How long a pod that has a node may take to start before its run gives the node back.
  std::int64_t start_timeout_ms = 1'800'000;
  // Runs of all Studies when the Job is built: all of them report to one API server.
  std::size_t runs_beside = 0;
  std::vector<api::GpuProfile> gpu_profiles = api::default_gpu_profiles();  // in order
  // The source from which JobRuns reads them again; null = they never change.
  std::shared_ptr<GpuCatalogue> gpu_catalogue = nullptr;
};

// The Study adapted to the trial: with gpu: {memory: auto} the trial sets the amount.
api::Study sized_for(api::Study study, const api::Trial& trial);

// The Job of run `run`. kInvalid: the Study can never run as it is written, with the reason.
Result<Json> build_job(const api::Study& study, const api::Trial& trial, std::int64_t run,
                       const JobOptions& options);

// The labels that objects beside `job` share with it: of its Study and its trial.
Json labels_beside(const kube::Job& job);

// The pod that the Job controller would create from `job`, for a dry run.
Json pod_of(const Json& job);

}  // namespace fettle::kubernetes
