#include "api/testing/rulebook.h"

#include <algorithm>
#include <utility>

#include "api/fields/field_reader.h"
#include "api/study/changes.h"
#include "api/study/study_json.h"
#include "api/trial/report.h"
#include "api/trial/trial_fields.h"
#include "api/trial/trial_json.h"

namespace fettle::api {
namespace {

bool is_trial(const Json& document) {
  const Json* kind = document.is_object() ? document.find("kind") : nullptr;
  return kind != nullptr && *kind == Json("Trial");
}

std::vector<FieldError> errors_of_study(const Json& before, const Json& after) {
  ReadStudy read = read_study(after);
  if (!read.errors.empty() || before.is_null()) return std::move(read.errors);
  const ReadStudy old = read_study(before, UnknownFields::kIgnored);
  return forbidden_changes(old.study.spec, read.study.spec);
}

Trial read_trial_fields(const Json& document, FieldErrors& errors) {
  Trial trial;
  read_struct(document, FieldPath(), trial, errors);
  if (errors.empty() && trial.status.report) {
    const Status fits = check_history_values(*trial.status.report);
    if (!fits.ok()) errors.add(FieldPath("status.report.history"), fits.error().message);
  }
  return trial;
}

bool starts_with(const std::vector<TrialPromotion>& list,
                 const std::vector<TrialPromotion>& beginning) {
  return list.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), list.begin());
}

std::vector<FieldError> errors_of_trial(const Json& before, const Json& after) {
  FieldErrors errors;
  const Trial trial = read_trial_fields(after, errors);
  if (!errors.empty() || before.is_null()) return std::move(errors).take();
  FieldErrors ignored(UnknownFields::kIgnored);
  return forbidden_trial_changes(read_trial_fields(before, ignored).spec, trial.spec);
}

}  // namespace

std::vector<FieldError> forbidden_trial_changes(const TrialSpec& before, const TrialSpec& after) {
  std::vector<FieldError> found = forbidden_differences(
      write_trial_spec(before), write_trial_spec(after), trial_may_change, kTrialFieldIsFixed);
  const auto add = [&found](const char* path, const char* message) {
    found.push_back({path, message});
  };
  if (after.until_step < before.until_step) add("spec.untilStep", "may only grow");
  if (!starts_with(after.search.promotions, before.search.promotions)) {
    add("spec.search.promotions", "may only be appended to");
  }
  return found;
}

std::vector<FieldError> errors_of_write(const Json& before, const Json& after) {
  std::vector<FieldError> errors =
      is_trial(after) ? errors_of_trial(before, after) : errors_of_study(before, after);
  if (errors.empty() || before.is_null()) return errors;
  const std::vector<FieldError> known = errors_of_write(Json(), before);
  std::erase_if(errors, [&](const FieldError& error) {
    return std::ranges::find(known, error) != known.end();
  });
  return errors;
}

Json with_defaults(const Json& document) {
  if (!is_trial(document)) return write_study(read_study(document).study);
  FieldErrors none;
  return write_trial(read_trial_fields(document, none));
}

}  // namespace fettle::api
