// The rulebook: what the API server does with a write of a Study or a Trial, given the
// CustomResourceDefinitions that crds/ generates from the same field lists.
//
// tests/schema shows that a real API server says the same of thousands of documents; the stand-ins
// of tests (tests/sim, runtime/kubernetes/testing/fake_cluster.h) ask these functions, so that none
// of them takes what a cluster would refuse. Pure; usable from any thread.
#pragma once

#include <vector>

#include "api/field_error.h"
#include "api/trial.h"
#include "base/json.h"

namespace fettle::api {

// What an API server refuses of a document that is created (`before` is null) or replaces `before`;
// empty: nothing. Its kind says whether it is a Study or a Trial. Unknown fields are errors, as
// with fieldValidation=Strict. What was wrong in `before` already may stay as it is.
std::vector<FieldError> errors_of_write(const Json& before, const Json& after);

// The fields of a Trial that differ and may not, as forbidden_changes (api/changes.h) says of a
// Study. untilStep only grows, and promotions are only appended to.
std::vector<FieldError> forbidden_trial_changes(const TrialSpec& before, const TrialSpec& after);

// A document without errors as it is stored: with all defaults.
Json with_defaults(const Json& document);

}  // namespace fettle::api
