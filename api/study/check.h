// Checks across fields: rules that a field list (field.h) cannot state about one field alone.
//
// Each check appends its findings to `errors` and skips fields that could not be read. Pure
// functions; usable from any thread.
#pragma once

#include "api/fields/field_errors.h"
#include "api/study/study.h"
#include "base/json.h"

namespace fettle::api {

void check_study(const Study& study, FieldErrors& errors);

// `path` is that of spec.
void check_population(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// `path` is that of spec.parameters.
void check_parameters(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// Checks the points to try first. Requires a warm start.
void check_points(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// Checks the form of known results. Requires a warm start.
void check_known(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
void check_sets(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// `path` is that of spec.trial.
void check_trial(const StudySpec& spec, const FieldPath& path, FieldErrors& errors);
// `path` is that of the built-in trainer's pod.
void check_pod(const TrialTemplate& trial, const FieldPath& path, FieldErrors& errors);
// Check one entry of a container's env, and a map with the requests and limits of a container, at
// `path`.
void check_env_entry(const Json& entry, const FieldPath& path, FieldErrors& errors);
void check_amounts(const Json& resources, const FieldPath& path, FieldErrors& errors);
// `path` is that of the template.
void check_pod_template(const Json& pod_template, const FieldPath& path, FieldErrors& errors);

}  // namespace fettle::api
