#include "operator/instruments.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/control/refusals.h"

namespace fettle::op {

namespace {

constexpr api::TrialPhase kPhases[] = {api::TrialPhase::kPending, api::TrialPhase::kRunning,
                                       api::TrialPhase::kPaused,  api::TrialPhase::kCompleted,
                                       api::TrialPhase::kStopped, api::TrialPhase::kFailed};

const char* name_of(control::Kind kind) {
  return kind == control::Kind::kStudy ? "Study" : "Trial";
}

double seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

}  // namespace

Instruments::Instruments(Sources sources, Log& log) : sources_(std::move(sources)), log_(log) {
  build_.at({FETTLE_VERSION}).Set(1);
}

void Instruments::on_event(const control::Change& about, const core::EventNote& event,
                           std::int64_t now_ms) {
  (void)now_ms;
  const LogFields fields = {{"kind", name_of(about.kind)},
                            {"namespace", about.key.ns},
                            {"name", about.key.name},
                            {"reason", event.reason},
                            {"note", event.message}};
  if (event.type == core::EventType::kWarning) {
    log_.warning("event", fields);
  } else {
    log_.info("event", fields);
  }
}

void Instruments::on_reconciled(const control::ReconcileRecord& reconciled) {
  const std::string kind = name_of(reconciled.item.kind);
  reconciles_.at({kind, reconciled.requeued ? "requeued" : "done"}).Increment();
  reconcile_seconds_.at({kind}).Observe(seconds(reconciled.took_ms));
  if (reconciled.error.empty()) return;
  const LogFields fields = {{"kind", kind},
                            {"namespace", reconciled.item.key.ns},
                            {"name", reconciled.item.key.name},
                            {"error", reconciled.error}};
  // Equal, not above: an object that stays refused is counted and logged once.
  if (reconciled.refused != control::kBlockedAfter) return log_.debug("requeued", fields);
  refused_.at({kind}).Increment();
  log_.warning("refused repeatedly", fields);
}

void Instruments::on_suggested(const control::Key&, std::int64_t took_ms) {
  suggest_seconds_.at({}).Observe(seconds(took_ms));
}

void Instruments::on_call(const kube::CallMade& call) {
  const std::string verb(call.verb);
  calls_.at({verb, call.resource, std::to_string(call.code)}).Increment();
  if (verb == "watch" || verb == "log") return;  // may last for minutes, which is no latency
  constexpr double kMicroseconds = 1e6;          // in a second
  call_seconds_.at({verb}).Observe(static_cast<double>(call.took.count()) / kMicroseconds);
}

// Changes from before the first list are not counted.
void Instruments::on_trial(const kubernetes::TrialEntry* before,
                           const kubernetes::TrialEntry* after) {
  if (before == nullptr || after == nullptr || !before->trial || !after->trial) return;
  if (before->metadata.uid != after->metadata.uid) return;
  const api::TrialStatus& was = before->trial->status;
  const api::TrialStatus& is = after->trial->status;
  const std::string& ns = after->metadata.ns;
  // When run 0 began to run; 0 = it has not, a queue took it back, or its record was dropped.
  const auto first_ran = [](const api::TrialStatus& status) {
    return status.runs.empty() || status.runs.front().run != 0 ? 0 : status.runs.front().running_ms;
  };
  if (first_ran(was) == 0 && first_ran(is) != 0 && was.runs.size() <= 1) {
    const std::int64_t took_ms = first_ran(is) - after->metadata.created_ms;
    start_seconds_.at({ns}).Observe(seconds(std::max<std::int64_t>(0, took_ms)));
  }
  const auto has_ended = [](const api::TrialStatus& status, std::int64_t run) {
    return std::ranges::any_of(status.runs, [run](const api::RunRecord& record) {
      return record.run == run && record.outcome;
    });
  };
  for (const api::RunRecord& record : is.runs) {
    if (!record.outcome || has_ended(was, record.run)) continue;
    runs_.at({ns, std::string(api::to_string(*record.outcome))}).Increment();
  }
}

void Instruments::on_policies(bool complete) { policies_.at({}).Set(complete ? 1 : 0); }

// States without a trial are shown as 0.
void Instruments::refresh() {
  std::map<std::string, double> states;
  for (const api::TrialPhase phase : kPhases) states[std::string(api::to_string(phase))] = 0;
  // A trial whose Study is gone is about to be deleted.
  std::set<std::string> owners;
  for (const auto& entry : sources_.studies.all()) owners.insert(entry->metadata.uid);
  for (const auto& entry : sources_.trials.all()) {
    const bool ours = entry->trial && owners.contains(entry->study_uid);
    if (ours) ++states[std::string(api::to_string(entry->trial->status.phase))];
  }
  for (const auto& [state, count] : states) trials_.at({state}).Set(count);
  refresh_studies(owners);
  queue_depth_.at({}).Set(static_cast<double>(sources_.queue_depth()));
  oldest_reconcile_.at({}).Set(seconds(sources_.oldest_reconcile_ms()));
  blocked_.at({}).Set(static_cast<double>(sources_.blocked()));
  leader_.at({}).Set(sources_.is_leader() ? 1 : 0);
  const kubernetes::GangLine line = sources_.gang_line();
  gang_line_.at({}).Set(static_cast<double>(line.length));
  gang_line_age_.at({}).Set(seconds(line.longest_ms));
  prometheus::Counter& dropped = events_dropped_.at({});
  // A Counter can only be increased, and the recorder counts itself.
  dropped.Increment(static_cast<double>(sources_.events_dropped()) - dropped.Value());
}

void Instruments::refresh_studies(const std::set<std::string>& uids) {
  // Removes the series of Studies that are gone, and of states that no Study has.
  studies_.clear();
  gpu_hours_.clear();
  std::map<std::string, double> studies;
  for (const auto& entry : sources_.studies.all()) {
    if (!entry->study) continue;  // it cannot be parsed
    const api::StudyStatus& status = entry->study->status;
    ++studies[status.display.state.empty() ? "New" : status.display.state];
    gpu_hours_.at({entry->metadata.ns, entry->metadata.name}).Set(status.gpu_hours);
    add_gpu_hours(*entry->study);
  }
  was_scraped_ = true;
  std::erase_if(spent_, [&](const auto& one) { return !uids.contains(one.first); });
  for (const auto& [state, count] : studies) studies_.at({state}).Set(count);
  left_out_.at({}).Set(static_cast<double>(gpu_hours_.left_out()));
}

// GPU-hours from before the first scrape were counted by the replica that led then.
void Instruments::add_gpu_hours(const api::Study& study) {
  const double now = study.status.gpu_hours;
  const auto [known, is_new] = spent_.try_emplace(study.metadata.uid, was_scraped_ ? 0 : now);
  if (now <= known->second) return;
  gpu_hours_total_.at({study.metadata.ns}).Increment(now - known->second);
  known->second = now;
}
std::string Instruments::text() {
  refresh();
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace fettle::op
