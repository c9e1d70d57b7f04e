// Checks across fields: what a field list (field.h) cannot say about one field alone.
//
// Each adds what it finds to `errors` and keeps quiet about fields that could not be read. Pure
// functions; usable from any thread.
#pragma once

#include "api/field_errors.h"
#include "api/study.h"
#include "base/json.h"

namespace fettle::api {

void check_study(const Study& study, FieldErrors& errors);

// `path`: of spec.
void check_population(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// `path`: of spec.parameters.
void check_parameters(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// Points to try first, of a Study with a warm start.
void check_points(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
void check_sets(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// `path`: of spec.trial.
void check_trial(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// `path`: of the built-in trainer's pod.
void check_pod(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors);
// An entry of a container's env, and the requests and limits of its resources, a map; `path`: of
// each.
void check_env_entry(const Json& entry, const FieldPath& path, FieldErrors& errors);
void check_amounts(const Json& resources, const FieldPath& path, FieldErrors& errors);
// `path`: of the template.
void check_pod_template(const Json& pod_template, const FieldPath& path, FieldErrors& errors);
// `path`: of the trainer's configuration.
void check_trainer(const TrainerConfig& config, const FieldPath& path, FieldErrors& errors);

}  // namespace fettle::api
