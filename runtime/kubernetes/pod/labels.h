// Labels and annotations of the objects of a run. Pure; usable from any thread.
#pragma once

#include "base/json.h"
#include "kube/objects/objects.h"

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
// Annotation of a pod: the trial file as JSON (pod_builder.h).
inline constexpr const char* kTrialFileAnnotation = "fettle.dev/trial";

// The labels that objects beside `job` share with it: of its Study and its trial.
Json inherited_labels(const kube::Job& job);

}  // namespace fettle::kubernetes
