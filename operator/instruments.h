// Instruments: what fettle-operator measures of itself (the names are in instruments.cpp).
//
// Counts and times are taken as things happen; how many trials are in which state and the like is
// looked up when somebody asks. Thread-safe. The caches outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/observer.h"
#include "kube/cache.h"
#include "kube/call_made.h"
#include "operator/log.h"
#include "operator/metrics.h"
#include "runtime/kubernetes/entries.h"

namespace fettle::op {

// What Instruments asks for when it is looked at.
struct Sources {
  const kube::Cache<kubernetes::StudyEntry>& studies;
  const kube::Cache<kubernetes::TrialEntry>& trials;
  std::function<std::size_t()> queue_depth;
  std::function<std::size_t()> blocked;
  std::function<std::uint64_t()> events_dropped;
  std::function<bool()> is_leader;
  std::function<std::int64_t()> oldest_reconcile_ms;
};

class Instruments final : public control::Observer {
 public:
  Instruments(Sources sources, Log& log);

  void on_event(const control::Change& about, const core::EventNote& event,
                std::int64_t now_ms) override;
  void on_reconciled(const control::ReconcileRecord& look) override;
  void on_suggested(const control::Key& study, std::int64_t took_ms) override;
  void on_call(const kube::CallMade& call);

  // Whether all of the chart's admission policies are in force.
  void on_policies(bool complete);

  // For Prometheus.
  std::string text();

 private:
  void look_up();

  const Sources sources_;
  Log& log_;
  Metrics metrics_;
  const Metrics::Id build_;
  const Metrics::Id leader_;
  const Metrics::Id studies_;
  const Metrics::Id trials_;
  const Metrics::Id gpu_hours_;
  const Metrics::Id queue_depth_;
  const Metrics::Id oldest_look_;
  const Metrics::Id blocked_;
  const Metrics::Id reconciles_;
  const Metrics::Id refused_;
  const Metrics::Id reconcile_seconds_;
  const Metrics::Id suggest_seconds_;
  const Metrics::Id calls_;
  const Metrics::Id call_seconds_;
  const Metrics::Id events_dropped_;
  const Metrics::Id policies_;
};

}  // namespace fettle::op
