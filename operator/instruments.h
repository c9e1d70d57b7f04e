// Instruments: the metrics of fettle-operator, and its log of events and errors.
//
// Counters and histograms are updated as things happen; gauges such as the number of trials in each
// state are computed at a scrape. Thread-safe, but text() is called by one thread. The caches must
// outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/control/observer.h"
#include "kube/client/call_made.h"
#include "kube/watch/cache.h"
#include "operator/log.h"
#include "operator/metrics.h"
#include "runtime/kubernetes/run/job_runs.h"
#include "runtime/kubernetes/store/entries.h"

namespace fettle::op {

// Inputs of the gauges, read at a scrape.
struct Sources {
  const kube::Cache<kubernetes::StudyEntry>& studies;
  const kube::Cache<kubernetes::TrialEntry>& trials;
  std::function<std::size_t()> queue_depth;
  std::function<std::size_t()> blocked;
  std::function<std::uint64_t()> events_dropped;
  std::function<bool()> is_leader;
  std::function<std::int64_t()> oldest_reconcile_ms;
  std::function<kubernetes::GangLine()> gang_line;
};

class Instruments final : public control::Observer {
 public:
  Instruments(Sources sources, Log& log);

  void on_event(const control::Change& about, const core::EventNote& event,
                std::int64_t now_ms) override;
  void on_reconciled(const control::ReconcileRecord& reconciled) override;
  void on_suggested(const control::Key& study, std::int64_t took_ms) override;
  void on_call(const kube::CallMade& call);
  // A trial changed in the cache; nullptr: it did not exist, or is gone.
  void on_trial(const kubernetes::TrialEntry* before, const kubernetes::TrialEntry* after);

  // Whether all of the chart's admission policies exist.
  void on_policies(bool complete);

  // The exposition format of Prometheus, 0.0.4.
  std::string text();

 private:
  void refresh();
  void refresh_studies(const std::set<std::string>& uids);
  void add_gpu_hours(const api::Study& study);

  const Sources sources_;
  Log& log_;
  prometheus::Registry registry_;
  Gauges build_{registry_, "fettle_build_info", "The version that runs.", {"version"}};
  Gauges leader_{registry_, "fettle_leader", "1 while this replica may write."};
  Gauges studies_{registry_, "fettle_studies", "Studies by state.", {"state"}};
  Gauges trials_{registry_, "fettle_trials", "Trials by state.", {"state"}};
  Gauges gpu_hours_{registry_,
                    "fettle_gpu_hours",
                    "GPU-hours that the existing Studies have spent.",
                    {"namespace", "study"}};
  // A Study's gauge is deleted with it; this counter stays, for accounting.
  Counters gpu_hours_total_{registry_,
                            "fettle_gpu_hours_total",
                            "GPU-hours that were spent since this replica began to lead.",
                            {"namespace"}};
  std::map<std::string, double> spent_;  // GPU-hours at the last scrape, by the Study's uid
  bool was_scraped_ = false;
  Gauges left_out_{registry_, "fettle_series_left_out",
                   "Studies without a series in fettle_gpu_hours, which has 1,000 at most."};
  Gauges gang_line_{registry_, "fettle_gang_line",
                    "Runs of several workers that wait for their turn to be scheduled."};
  Gauges gang_line_age_{registry_, "fettle_gang_line_oldest_seconds",
                        "For how long the first of them has waited."};
  Histograms start_seconds_{registry_,
                            "fettle_trial_start_seconds",
                            "Time from the creation of a trial until it runs.",
                            {"namespace"},
                            kWaitBuckets};
  Counters runs_{
      registry_, "fettle_runs_total", "Runs of trials that have ended.", {"namespace", "outcome"}};
  Gauges queue_depth_{registry_, "fettle_queue_depth", "Objects that wait for a worker."};
  Gauges oldest_reconcile_{registry_, "fettle_oldest_reconcile_seconds",
                           "For how long the slowest reconcile in progress has got nothing done."};
  Gauges blocked_{registry_, "fettle_blocked",
                  "Objects with an action that is refused repeatedly for the same reason."};
  Counters reconciles_{registry_,
                       "fettle_reconciles_total",
                       "Reconciles of objects; requeued ones are repeated.",
                       {"kind", "outcome"}};
  Counters refused_{registry_,
                    "fettle_refused_total",
                    "Actions refused for the same reason three times in a row.",
                    {"kind"}};
  Histograms reconcile_seconds_{
      registry_, "fettle_reconcile_seconds", "Duration of a reconcile.", {"kind"}};
  Histograms suggest_seconds_{registry_, "fettle_suggest_seconds",
                              "Time in which a sampler suggests points."};
  Counters calls_{registry_,
                  "fettle_api_calls_total",
                  "Calls to the API server; code 0 means no answer.",
                  {"verb", "resource", "code"}};
  Histograms call_seconds_{registry_,
                           "fettle_api_call_seconds",
                           "Duration of calls to the API server, without watches and logs.",
                           {"verb"}};
  Counters events_dropped_{registry_, "fettle_events_dropped_total",
                           "Events that could not be written."};
  Gauges policies_{
      registry_, "fettle_admission_policies",
      "1 if all admission policies existed when this replica started to lead, else 0."};
};

}  // namespace fettle::op
