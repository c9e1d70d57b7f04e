// The rulebook: the API server's answer to a write of a Study or a Trial, given the
// CustomResourceDefinitions that crds/ generates from the same field lists.
//
// tests/schema shows that a real API server answers thousands of documents alike. Test doubles
// (tests/sim, runtime/kubernetes/testing/fake_cluster.h) ask these functions, so that they never
// accept what a cluster would refuse. Pure; usable from any thread.
#pragma once

#include <vector>

#include "api/fields/field_error.h"
#include "api/trial/trial.h"
#include "base/json.h"

namespace fettle::api {

// Returns the API server's objections to a document that is created (`before` is null) or replaces
// `before`; empty if it is accepted. Its kind tells a Study from a Trial. Unknown fields are
// errors, as with fieldValidation=Strict. Errors that `before` has already may stay.
std::vector<FieldError> errors_of_write(const Json& before, const Json& after);

// Returns the fields of a Trial that differ although they may not, as forbidden_changes
// (api/study/changes.h) does for a Study. untilStep only grows, and promotions are only appended
// to.
std::vector<FieldError> forbidden_trial_changes(const TrialSpec& before, const TrialSpec& after);

// Returns a document without errors as it is stored: with all defaults.
Json with_defaults(const Json& document);

}  // namespace fettle::api
