#include "operator/instruments.h"

#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "api/names.h"
#include "control/refusals.h"

namespace fettle::op {

namespace {

using Type = Metrics::Type;

// From a look at an object in memory to one that waits for the API server.
const std::vector<double> kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                      0.1,   0.25,   0.5,   1,    2.5,   10};

constexpr api::TrialPhase kPhases[] = {api::TrialPhase::kPending, api::TrialPhase::kRunning,
                                       api::TrialPhase::kPaused,  api::TrialPhase::kCompleted,
                                       api::TrialPhase::kStopped, api::TrialPhase::kFailed};

const char* name_of(control::Kind kind) {
  return kind == control::Kind::kStudy ? "Study" : "Trial";
}

double seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000; }

}  // namespace

Instruments::Instruments(Sources sources, Log& log)
    : sources_(std::move(sources)),
      log_(log),
      build_(metrics_.declare(
          {"fettle_build_info", "The version that runs.", Type::kGauge, {"version"}, {}})),
      leader_(metrics_.declare(
          {"fettle_leader", "1 while this replica may write.", Type::kGauge, {}, {}})),
      studies_(
          metrics_.declare({"fettle_studies", "Studies by state.", Type::kGauge, {"state"}, {}})),
      trials_(metrics_.declare({"fettle_trials", "Trials by state.", Type::kGauge, {"state"}, {}})),
      gpu_hours_(metrics_.declare({"fettle_gpu_hours",
                                   "GPU-hours that the Studies there are have spent.",
                                   Type::kGauge,
                                   {"namespace", "study"},
                                   {}})),
      queue_depth_(metrics_.declare(
          {"fettle_queue_depth", "Objects that wait for a worker.", Type::kGauge, {}, {}})),
      oldest_look_(metrics_.declare({"fettle_oldest_look_seconds",
                                     "For how long the oldest look under way has been so.",
                                     Type::kGauge,
                                     {},
                                     {}})),
      blocked_(metrics_.declare({"fettle_blocked",
                                 "Objects that are refused the same again and again.",
                                 Type::kGauge,
                                 {},
                                 {}})),
      reconciles_(metrics_.declare({"fettle_reconciles_total",
                                    "Looks at objects; requeued ones are made again.",
                                    Type::kCounter,
                                    {"kind", "outcome"},
                                    {}})),
      refused_(metrics_.declare({"fettle_refused_total",
                                 "Actions refused for the same reason three times in a row.",
                                 Type::kCounter,
                                 {"kind"},
                                 {}})),
      reconcile_seconds_(metrics_.declare({"fettle_reconcile_seconds",
                                           "How long a look at an object takes.",
                                           Type::kHistogram,
                                           {"kind"},
                                           kSeconds})),
      suggest_seconds_(metrics_.declare({"fettle_suggest_seconds",
                                         "How long a sampler takes to suggest points.",
                                         Type::kHistogram,
                                         {},
                                         kSeconds})),
      calls_(metrics_.declare({"fettle_api_calls_total",
                               "Calls to the API server; code 0 is no answer.",
                               Type::kCounter,
                               {"verb", "resource", "code"},
                               {}})),
      call_seconds_(metrics_.declare({"fettle_api_call_seconds",
                                      "How long calls to the API server take, watches aside.",
                                      Type::kHistogram,
                                      {"verb"},
                                      kSeconds})),
      events_dropped_(metrics_.declare({"fettle_events_dropped_total",
                                        "Events that could not be written.",
                                        Type::kCounter,
                                        {},
                                        {}})),
      policies_(metrics_.declare({"fettle_admission_policies",
                                  "1 when all were there as this replica began to lead, else 0.",
                                  Type::kGauge,
                                  {},
                                  {}})) {
  metrics_.set(build_, {FETTLE_VERSION}, 1);
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

void Instruments::on_reconciled(const control::ReconcileRecord& look) {
  const std::string kind = name_of(look.item.kind);
  metrics_.add(reconciles_, {kind, look.requeued ? "requeued" : "done"});
  metrics_.observe(reconcile_seconds_, {kind}, seconds(look.took_ms));
  if (look.error.empty()) return;
  const LogFields fields = {{"kind", kind},
                            {"namespace", look.item.key.ns},
                            {"name", look.item.key.name},
                            {"error", look.error}};
  if (look.refused != control::kBlockedAfter) return log_.debug("look again", fields);
  metrics_.add(refused_, {kind});
  log_.warning("refused again and again", fields);
}

void Instruments::on_suggested(const control::Key&, std::int64_t took_ms) {
  metrics_.observe(suggest_seconds_, {}, seconds(took_ms));
}

void Instruments::on_call(const kube::CallMade& call) {
  const std::string verb(call.verb);
  metrics_.add(calls_, {verb, call.resource, std::to_string(call.code)});
  if (verb == "watch" || verb == "log") return;
  metrics_.observe(call_seconds_, {verb}, static_cast<double>(call.took.count()) / 1e6);
}

void Instruments::on_policies(bool complete) { metrics_.set(policies_, {}, complete ? 1 : 0); }

// States that are known but have nothing in them are shown as 0.
void Instruments::look_up() {
  std::map<std::string, double> states;
  for (const api::TrialPhase phase : kPhases) states[std::string(api::to_string(phase))] = 0;
  std::set<std::string> owners;
  for (const auto& entry : sources_.studies.all()) owners.insert(entry->metadata.uid);
  for (const auto& entry : sources_.trials.all()) {
    const bool ours = entry->trial && owners.contains(entry->study_uid);
    if (ours) ++states[std::string(api::to_string(entry->trial->status.phase))];
  }
  for (const auto& [state, count] : states) metrics_.set(trials_, {state}, count);
  metrics_.clear(studies_);
  metrics_.clear(gpu_hours_);
  std::map<std::string, double> studies;
  for (const auto& entry : sources_.studies.all()) {
    if (!entry->study) continue;
    const api::StudyStatus& status = entry->study->status;
    ++studies[status.display.state.empty() ? "New" : status.display.state];
    metrics_.set(gpu_hours_, {entry->metadata.ns, entry->metadata.name}, status.gpu_hours);
  }
  for (const auto& [state, count] : studies) metrics_.set(studies_, {state}, count);
  metrics_.set(queue_depth_, {}, static_cast<double>(sources_.queue_depth()));
  metrics_.set(oldest_look_, {}, seconds(sources_.oldest_reconcile_ms()));
  metrics_.set(blocked_, {}, static_cast<double>(sources_.blocked()));
  metrics_.set(leader_, {}, sources_.is_leader() ? 1 : 0);
  metrics_.set(events_dropped_, {}, static_cast<double>(sources_.events_dropped()));
}

std::string Instruments::text() {
  look_up();
  return metrics_.text();
}

}  // namespace fettle::op
