#include "operator/instruments.h"

#include <prometheus/text_serializer.h>

#include <map>
#include <set>
#include <utility>

#include "api/names.h"
#include "control/refusals.h"

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
  // Equal, not above: one that stays refused is counted and logged once.
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
  if (verb == "watch" || verb == "log") return;
  constexpr double kMicroseconds = 1e6;  // in a second
  call_seconds_.at({verb}).Observe(static_cast<double>(call.took.count()) / kMicroseconds);
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
  studies_.clear();
  gpu_hours_.clear();
  std::map<std::string, double> studies;
  for (const auto& entry : sources_.studies.all()) {
    if (!entry->study) continue;  // it cannot be read
    const api::StudyStatus& status = entry->study->status;
    ++studies[status.display.state.empty() ? "New" : status.display.state];
    gpu_hours_.at({entry->metadata.ns, entry->metadata.name}).Set(status.gpu_hours);
  }
  for (const auto& [state, count] : studies) studies_.at({state}).Set(count);
  queue_depth_.at({}).Set(static_cast<double>(sources_.queue_depth()));
  oldest_reconcile_.at({}).Set(seconds(sources_.oldest_reconcile_ms()));
  blocked_.at({}).Set(static_cast<double>(sources_.blocked()));
  leader_.at({}).Set(sources_.is_leader() ? 1 : 0);
  prometheus::Counter& dropped = events_dropped_.at({});
  // A Counter can only be increased, and the recorder counts itself.
  dropped.Increment(static_cast<double>(sources_.events_dropped()) - dropped.Value());
}

std::string Instruments::text() {
  refresh();
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace fettle::op
