#include "runtime/kubernetes/store/entries.h"

#include <utility>
#include <vector>

#include "api/fields/field_errors.h"
#include "api/fields/timestamp.h"
#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/names.h"
#include "kube/objects/json_path.h"

namespace fettle::kubernetes {
namespace {

constexpr const char* kReadable = "Readable";

Result<api::Study> read_stored_study(const Json& object) {
  api::ReadStudy read = api::read_study(object, api::UnknownFields::kIgnored);
  if (read.errors.empty()) return std::move(read.study);
  return invalid(api::to_string(read.errors));
}

Result<api::Trial> read_stored_trial(const Json& object) {
  return api::read_trial(object, api::UnknownFields::kIgnored);
}

// Reads `object`; if that fails, again without the part that `take_out` removes.
template <class Object, class Read, class TakeOut>
Result<Object> read_or_shorten(const Json& object, const Read& read, const TakeOut& take_out) {
  Result<Object> whole = read(object);
  if (whole.ok()) return whole;
  Json less = object;
  take_out(less);
  Result<Object> rest = read(less);
  return rest.ok() ? std::move(rest) : std::move(whole);
}

// `why`: the reason why it cannot be read; "" = it can.
Readability readability_of(const Json& object, const std::string& why) {
  Readability out;
  out.why = core::truncate_message(why);
  std::string stored;
  for (const Json& condition : kube::array_at(object, {"status", "conditions"})) {
    if (kube::text_at(condition, {"type"}) == kReadable) {
      stored = kube::text_at(condition, {"message"});
    }
  }
  out.reported = stored == out.why;  // true also without a condition, if it can be read
  if (!out.reported) out.conditions = Json(kube::array_at(object, {"status", "conditions"}));
  return out;
}

// Drops the learning curve of a finished trial. Returns whether there was one.
bool trim(api::Trial& trial) {
  if (!core::is_done(trial) || !trial.status.report) return false;
  std::vector<api::HistoryPoint>& curve = trial.status.report->history;
  const bool was_there = !curve.empty();
  curve = {};
  return was_there;
}

// Readable is about the stored object; the Study or Trial itself does not have it.
void leave_out_readable(std::vector<api::StatusCondition>& conditions) {
  std::erase_if(conditions, [](const auto& condition) { return condition.type == kReadable; });
}

std::string study_uid_of(const Json& object) {
  for (const Json& owner : kube::array_at(object, {"metadata", "ownerReferences"})) {
    if (kube::text_at(owner, {"kind"}) == kube::kStudies.kind) return kube::text_at(owner, {"uid"});
  }
  return "";
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
      object, read_stored_study, [](Json& document) { document.erase("status"); });
  entry.readability = readability_of(object, study.ok() ? "" : study.error().message);
  if (!study.ok()) return entry;
  leave_out_readable(study->status.conditions);
  entry.study = std::make_shared<const api::Study>(std::move(study).value());
  return entry;
}

Result<TrialEntry> read_trial_entry(const Json& object) {
  TrialEntry entry;
  entry.metadata = kube::read_metadata(object);
  FETTLE_TRY(check_name(entry.metadata));
  entry.study = kube::text_at(object, {"spec", "study"});
  entry.study_uid = study_uid_of(object);
  Result<api::Trial> trial =
      read_or_shorten<api::Trial>(object, read_stored_trial, [](Json& document) {
        if (Json* status = document.find("status")) status->erase("report");
      });
  entry.readability = readability_of(object, trial.ok() ? "" : trial.error().message);
  if (!trial.ok()) return entry;
  leave_out_readable(trial->status.conditions);
  trial->metadata.labels[core::kStudyUidLabel] = entry.study_uid;
  entry.is_trimmed = trim(*trial);
  entry.trial = std::make_shared<const api::Trial>(std::move(trial).value());
  return entry;
}

Json conditions_with(const Readability& readability, std::int64_t now_ms) {
  Json conditions = Json::array();
  for (const Json& condition : readability.conditions.as_array()) {
    if (kube::text_at(condition, {"type"}) != kReadable) conditions.push_back(condition);
  }
  if (readability.why.empty()) return conditions;
  conditions.push_back(Json::object({{"type", kReadable},
                                     {"status", "False"},
                                     {"reason", "Unreadable"},
                                     {"message", readability.why},
                                     {"lastTransitionTime", api::format_timestamp(now_ms)}}));
  return conditions;
}

}  // namespace fettle::kubernetes
