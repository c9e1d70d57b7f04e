#include "trainer/reporter/reporter.h"

#include <utility>

#include "api/trial/trial_json.h"
#include "kube/objects/resource.h"

namespace fettle::trainer {

namespace {

// Pace counts on a monotonic clock; reports carry the wall clock.
std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::int64_t wall_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

bool is_true(const Json* value) {
  return value != nullptr && value->is_boolean() && value->as_boolean();
}

std::int64_t integer_or_zero(const Json* value) {
  return value != nullptr && value->is_integer() ? value->as_integer() : 0;
}

// The report of earlier runs, if readable: a report damaged by hand must not block this run's.
std::optional<api::Report> report_of(const Json& trial) {
  const Json* status = trial.find("status");
  const Json* report = status != nullptr ? status->find("report") : nullptr;
  if (report == nullptr) return std::nullopt;
  auto read = api::read_report(*report, api::UnknownFields::kIgnored);
  return read.ok() ? std::optional(*std::move(read)) : std::nullopt;
}

}  // namespace

TrialDirectives read_directives(const Json& trial) {
  const Json* spec = trial.find("spec");
  if (spec == nullptr) return {};
  const Json* stop = spec->find("stop");
  return {stop != nullptr && !stop->is_null(), is_true(spec->find("suspend")),
          integer_or_zero(spec->find("untilStep")), integer_or_zero(spec->find("workers"))};
}

Reporter::Reporter(kube::Client& client, ReporterSettings settings)
    : client_(client),
      settings_(std::move(settings)),
      pace_(settings_.needs.rungs, settings_.interval_ms, settings_.longest_interval_ms),
      thread_([this] { work(); }) {}

Reporter::~Reporter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reporter::submit(api::ReportLine line) {
  {
    const std::lock_guard lock(mutex_);
    pace_.reported(line.step, line.final_result);
    api::add_line(report_, std::move(line), settings_.needs, wall_ms());
    delivered_ = false;
  }
  changed_.notify_all();
}

bool Reporter::finish(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  pace_.hurry();
  changed_.notify_all();
  return changed_.wait_for(lock, most, [this] { return delivered_; });
}

// ---- The reporter's thread ---------------------------------------------------------------------

void Reporter::work() {
  while (const std::optional<api::Report> report = wait_for_report()) {
    const Status sent = send(*report);
    note_result(sent);
    const std::lock_guard lock(mutex_);
    const bool throttled = throttled_.exchange(false);
    if (sent.ok()) {
      pace_.delivered(steady_ms(), throttled);
    } else {
      pace_.failed(steady_ms(), throttled);
    }
    delivered_ = !pace_.due_ms();  // false if it failed, or another was submitted meanwhile
    changed_.notify_all();
  }
}

std::optional<api::Report> Reporter::wait_for_report() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const std::int64_t now = steady_ms();
    const std::optional<std::int64_t> due = pace_.due_ms();
    if (!due) {
      changed_.wait(lock);
    } else if (*due > now) {
      changed_.wait_for(lock, std::chrono::milliseconds(*due - now));
    } else {
      pace_.begin(now);
      return report_;
    }
  }
  return std::nullopt;
}

Status Reporter::send(const api::Report& report) {
  if (!read_) FETTLE_TRY(read_earlier());
  const api::Report joined = api::join_reports(earlier_, report, settings_.needs);
  Json object = Json::object({{"apiVersion", kube::api_version(kube::kTrials)},
                              {"kind", kube::kTrials.kind},
                              {"metadata", Json::object({{"name", settings_.trial.name},
                                                         {"namespace", settings_.trial.ns}})},
                              {"status", Json::object({{"report", api::write_report(joined)}})}});
  FETTLE_ASSIGN(const kube::Written written, client_.apply(kube::kTrials, settings_.trial, "status",
                                                           object, api::kReportManager));
  heed(written.object);
  return success();
}

Status Reporter::read_earlier() {
  FETTLE_ASSIGN(const kube::Written trial,
                client_.patch(kube::kTrials, settings_.trial, "status", Json::object()));
  earlier_ = report_of(trial.object);
  read_ = true;
  return success();
}

// Records the spec's directives for this run, and logs changes once.
void Reporter::heed(const Json& trial) {
  const TrialDirectives directives = read_directives(trial);
  if (directives_ && *directives_ == directives) return;
  if (directives.stop || directives.suspend) {
    settings_.log(directives.stop ? "the trial is to be stopped" : "the trial is to be suspended");
    stop_wanted_ = true;
  } else if (directives_ && directives_->until_step != directives.until_step) {
    settings_.log("untilStep is now " + std::to_string(directives.until_step) +
                  "; the next run goes there");
  } else if (directives_ && directives_->workers != directives.workers) {
    settings_.log("workers is now " + std::to_string(directives.workers) + "; this run is resized");
  }
  directives_ = directives;
}

// Logs one line when trouble begins or changes, and one when it is over.
void Reporter::note_result(const Status& status) {
  const std::string trouble = status.ok() ? "" : status.error().message;
  if (trouble == last_trouble_) return;
  settings_.log(status.ok() ? "reports are delivered again"
                            : "a report was not delivered and is tried again: " + trouble);
  last_trouble_ = trouble;
}

}  // namespace fettle::trainer
