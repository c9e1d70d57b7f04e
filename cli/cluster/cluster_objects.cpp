#include "cli/cluster/cluster_objects.h"

#include <algorithm>
#include <utility>

#include "api/fields/field_error.h"
#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "kube/objects/json_path.h"

namespace fettle::cli {

Result<api::Study> read_study_object(const Json& object) {
  api::ReadStudy read = api::read_study(object, api::UnknownFields::kIgnored);
  if (read.errors.empty()) return std::move(read.study);
  const api::FieldError& first = read.errors.front();
  return invalid("Study " + kube::text_at(object, {"metadata", "name"}) +
                 " cannot be read: " + first.path + ": " + first.message);
}

Result<api::Trial> read_trial_object(const Json& object) {
  auto trial = api::read_trial(object, api::UnknownFields::kIgnored);
  if (trial.ok()) return trial;
  return Error(trial.error())
      .in("Trial " + kube::text_at(object, {"metadata", "name"}) + " cannot be read");
}

void sort_by_index(std::vector<api::TrialPtr>& trials) {
  std::ranges::sort(trials, [](const api::TrialPtr& a, const api::TrialPtr& b) {
    return a->spec.index < b->spec.index;
  });
}

}  // namespace fettle::cli
