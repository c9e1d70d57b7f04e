// Observer: receives what the controllers do, for screens, logs and metrics.
#pragma once

#include <cstdint>
#include <string>

#include "core/control/store.h"
#include "core/control/work_queue.h"
#include "core/plan.h"

namespace fettle::control {

// One reconcile, for logs and metrics.
struct ReconcileRecord {
  Item item;
  int actions = 0;        // executed
  bool requeued = false;  // the plan was stale or failed and is made again
  std::string error;      // "" or why the plan was not carried out
  int refused = 0;        // refusals of this object in a row for the same reason (refusals.h)
  std::int64_t took_ms = 0;
};

// Called from the workers, between writes, so it must return quickly. With several workers
// (ManagerOptions) it is called from all of them at the same time.
class Observer {
 public:
  virtual ~Observer() = default;
  // An event, also kept by Store::record_event.
  virtual void on_event(const Change& about, const core::EventNote& event, std::int64_t now_ms) {
    (void)about, (void)event, (void)now_ms;
  }
  virtual void on_reconciled(const ReconcileRecord& record) { (void)record; }
  // A sampler was asked for points of a Study.
  virtual void on_suggested(const Key& study, std::int64_t took_ms) { (void)study, (void)took_ms; }
};

// Keeps the event and shows it.
inline void record_event(Store& store, Observer& observer, const Change& about,
                         const core::EventNote& event, std::int64_t now_ms) {
  const bool warning = event.type == core::EventType::kWarning;
  store.record_event(about, warning, event.reason, event.message, now_ms);
  observer.on_event(about, event, now_ms);
}

}  // namespace fettle::control
