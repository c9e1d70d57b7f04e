#include "api/trial/trial_json.h"

#include "api/fields/field_document.h"
#include "api/fields/field_writer.h"
#include "api/trial/trial_fields.h"

namespace fettle::api {

Json write_trial(const Trial& trial) { return write_struct(trial); }
Result<Trial> read_trial(const Json& document, UnknownFields unknown) {
  Result<Trial> trial = read_document<Trial>(document, unknown);
  if (trial.ok() && trial->status.report) FETTLE_TRY(check_history_values(*trial->status.report));
  return trial;
}

Json write_trial_spec(const TrialSpec& spec) { return write_struct(spec); }
Json write_trial_status(const TrialStatus& status) { return write_struct(status); }

Json write_report(const Report& report) { return write_struct(report); }
Result<Report> read_report(const Json& document, UnknownFields unknown) {
  Result<Report> report = read_document<Report>(document, unknown);
  if (report.ok()) FETTLE_TRY(check_history_values(*report));
  return report;
}

}  // namespace fettle::api
