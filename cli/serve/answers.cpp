#include "cli/serve/answers.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "cli/exchange/document.h"
#include "cli/report/study_data.h"
#include "cli/serve/log_tail.h"
#include "cli/views/reason.h"

namespace fettle::cli {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
    case ErrorCode::kInvalid:
      return 404;
    case ErrorCode::kForbidden:
      return 403;
    default:
      return 503;
  }
}

// FNV-1a: tells versions of a Study apart; nobody gains by a collision.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
    hash_ = (hash_ ^ 0xFFU) * 1'099'511'628'211U;
  }
  std::string text() const {
    char text[24];
    std::snprintf(text, sizeof text, "\"%016" PRIx64 "\"", hash_);
    return text;
  }

 private:
  std::uint64_t hash_ = 14'695'981'039'346'656'037U;
};

std::string etag_of(const RunView& view) {
  Fingerprint print;
  print.add(view.study.metadata.uid);
  print.add(view.study.metadata.resource_version);
  print.add(state_of(view));
  for (const api::TrialPtr& trial : view.trials) print.add(trial->metadata.resource_version);
  return print.text();
}

// A label's value: \ " and line breaks are escaped.
std::string label_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

double number_at(const Json& row, const char* first, const char* second = nullptr) {
  const Json* found = row.find(first);
  if (found != nullptr && second != nullptr) found = found->find(second);
  return found != nullptr && found->is_number() ? found->as_double() : 0;
}

// One metric with a sample for each Study.
class Metric {
 public:
  Metric(std::string& out, const char* name, const char* help) : out_(out), name_(name) {
    out_ += std::string("# HELP ") + name + ' ' + help + "\n# TYPE " + name + " gauge\n";
  }
  void add(const std::string& study, const std::string& labels, double value) {
    out_ += std::string(name_) + "{study=\"" + label_text(study) + '"' + labels + "} " +
            Json(value).dump() + '\n';
  }

 private:
  std::string& out_;
  const char* const name_;
};

Status update_all(StudySource& source, StudyList& list) {
  do {
    FETTLE_TRY(list.update(source));
  } while (list.is_behind());
  return success();
}

}  // namespace

HttpAnswer json_answer(const Json& json) {
  return {.content_type = "application/json", .body = json.dump() + '\n'};
}

HttpAnswer error_answer(const Error& error) {
  HttpAnswer answer = json_answer(Json::object({{"error", error.message}}));
  answer.status = status_of(error.code);
  return answer;
}

HttpAnswer document_answer(StudySource& source, const std::string& study, std::string_view known) {
  const auto seen = source.read(study, Detail::kWithEvents);
  if (!seen.ok()) return error_answer(seen.error());
  const std::string etag = etag_of(seen->view);
  HttpAnswer answer;
  if (known == etag) {
    answer.status = 304;
  } else {
    answer = json_answer(export_document(seen->view));
  }
  answer.headers = {{"ETag", etag}, {"Cache-Control", "no-cache"}};
  return answer;
}

HttpAnswer insight_answer(StudySource& source, const std::string& study) {
  const auto seen = source.read(study, Detail::kObjects);
  if (!seen.ok()) return error_answer(seen.error());
  return json_answer(Json::object({{"insights", insights_data(seen->view)}}));
}

HttpAnswer why_answer(StudySource& source, const std::string& trial) {
  const auto seen = read_study_of(source, trial);
  if (!seen.ok()) return error_answer(seen.error());
  const api::Trial& found = *find_trial(seen->view.trials, trial);
  const auto reason = reason_of(seen->view, found);
  if (!reason.ok()) return error_answer(reason.error());
  return json_answer(Json::object({{"text", render_reason(seen->view, found, *reason)}}));
}

HttpAnswer log_answer(StudySource& source, const std::string& trial, std::uint64_t from) {
  std::string text;
  const Status printed = source.print_log(trial, std::nullopt, /*follow=*/false,
                                          [&text](std::string_view bytes) { text += bytes; });
  if (!printed.ok()) return error_answer(printed.error());
  return {
      .body = log_text(std::string_view(text).substr(std::min<std::uint64_t>(from, text.size()))),
      .headers = {{"X-Fettle-Log-Bytes", std::to_string(text.size())}}};
}

HttpAnswer studies_answer(StudySource& source, StudyList& list) {
  const Status updated = update_all(source, list);
  if (!updated.ok()) return error_answer(updated.error());
  Json studies = Json::array();
  for (const auto& [name, row] : list.rows()) studies.push_back(row.data);
  return json_answer(Json::object({{"place", source.place()}, {"studies", std::move(studies)}}));
}

HttpAnswer metrics_answer(StudySource& source, StudyList& list) {
  const Status updated = update_all(source, list);
  if (!updated.ok()) return error_answer(updated.error());
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = metrics_text(list.rows())};
}

std::string metrics_text(const std::map<std::string, StudyList::Row>& rows) {
  std::string out;
  const auto each = [&rows](auto add) {
    for (const auto& [name, row] : rows) {
      if (row.data.find("error") == nullptr) add(name, row.data);
    }
  };
  Metric state(out, "fettle_study_state", "1 for the state that the Study is in.");
  each([&](const std::string& name, const Json& row) {
    state.add(name, ",state=\"" + label_text(row.find("state")->as_string()) + '"', 1);
  });
  Metric trials(out, "fettle_study_trials", "Trials of the Study; one may count for two states.");
  each([&](const std::string& name, const Json& row) {
    for (const char* which :
         {"created", "running", "completed", "stopped", "failed", "infeasible"}) {
      trials.add(name, std::string(",trials=\"") + which + '"', number_at(row, "trials", which));
    }
  });
  Metric best(out, "fettle_study_best", "The best value of the first objective.");
  each([&](const std::string& name, const Json& row) {
    const Json* const found = row.find("best");
    const Json* const value = found == nullptr ? nullptr : found->find("value");
    if (value == nullptr || !value->is_number()) return;
    const std::string metric = row.find("objective")->find("metric")->as_string();
    best.add(name, ",metric=\"" + label_text(metric) + '"', value->as_double());
  });
  Metric hours(out, "fettle_study_gpu_hours", "GPU-hours that the Study has used.");
  each([&](const std::string& name, const Json& row) {
    hours.add(name, "", number_at(row, "gpuHours"));
  });
  Metric active(out, "fettle_study_active_seconds", "Seconds in which a trial of it was running.");
  each([&](const std::string& name, const Json& row) {
    active.add(name, "", number_at(row, "activeSeconds"));
  });
  return out;
}

}  // namespace fettle::cli
