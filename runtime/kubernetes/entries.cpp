#include "runtime/kubernetes/entries.h"

#include <utility>

#include "api/field_errors.h"
#include "api/study_json.h"
#include "api/timestamp.h"
#include "api/trial_json.h"
#include "core/history.h"
#include "core/run_records.h"
#include "kube/json_path.h"

namespace fettle::kubernetes {
namespace {

constexpr const char* kConditionType = "Failed";
constexpr const char* kConditionReason = "Unreadable";

Result<api::Study> read_study_text(const Json& object) {
  api::ReadStudy read = api::read_study(object);
  if (read.errors.empty()) return std::move(read.study);
  return invalid(api::to_string(read.errors));
}

// Reads `object`; where that fails, once more without what `shorten` takes out.
template <class Object, class Read, class Shorten>
Result<Object> read_or_shorten(const Json& object, const Read& read, const Shorten& take_out) {
  Result<Object> whole = read(object);
  if (whole.ok()) return whole;
  Json less = object;
  take_out(less);
  Result<Object> rest = read(less);
  return rest.ok() ? std::move(rest) : std::move(whole);
}

Unreadable unreadable_as(const Json& object, const std::string& why) {
  Unreadable out;
  out.why = core::shorten(why);
  out.conditions = Json(kube::array_at(object, {"status", "conditions"}));
  for (const Json& condition : out.conditions.as_array()) {
    out.said = out.said || (kube::text_at(condition, {"type"}) == kConditionType &&
                            kube::text_at(condition, {"message"}) == out.why);
  }
  return out;
}

// Leaves out what nobody needs of a trial that is done. Whether there was anything.
bool trim(api::Trial& trial) {
  if (!core::is_done(trial) || !trial.status.report) return false;
  std::vector<api::HistoryPoint>& curve = trial.status.report->history;
  const bool was_there = !curve.empty();
  curve = {};
  return was_there;
}

Status check_name(const api::Metadata& metadata) {
  return metadata.name.empty() ? Status(invalid("an object without a name")) : success();
}

}  // namespace

Result<StudyEntry> read_study_entry(const Json& object) {
  StudyEntry entry;
  entry.metadata = kube::read_metadata(object);
  FETTLE_TRY(check_name(entry.metadata));
  Result<api::Study> study = read_or_shorten<api::Study>(
      object, read_study_text, [](Json& document) { document.erase("status"); });
  if (study.ok()) {
    entry.study = std::make_shared<const api::Study>(std::move(study).value());
  } else {
    entry.unreadable = unreadable_as(object, study.error().message);
  }
  return entry;
}

Result<TrialEntry> read_trial_entry(const Json& object) {
  TrialEntry entry;
  entry.metadata = kube::read_metadata(object);
  FETTLE_TRY(check_name(entry.metadata));
  entry.study = kube::text_at(object, {"spec", "study"});
  Result<api::Trial> trial =
      read_or_shorten<api::Trial>(object, api::read_trial, [](Json& document) {
        if (Json* status = document.find("status")) status->erase("report");
      });
  if (trial.ok()) {
    entry.is_trimmed = trim(*trial);
    entry.trial = std::make_shared<const api::Trial>(std::move(trial).value());
  } else {
    entry.unreadable = unreadable_as(object, trial.error().message);
  }
  return entry;
}

Json conditions_of_unreadable(const Unreadable& unreadable, std::int64_t now_ms) {
  Json conditions = Json::array();
  for (const Json& condition : unreadable.conditions.as_array()) {
    if (kube::text_at(condition, {"type"}) != kConditionType) conditions.push_back(condition);
  }
  conditions.push_back(Json::object({{"type", kConditionType},
                                     {"status", "True"},
                                     {"reason", kConditionReason},
                                     {"message", unreadable.why},
                                     {"lastTransitionTime", api::format_timestamp(now_ms)}}));
  return conditions;
}

}  // namespace fettle::kubernetes
