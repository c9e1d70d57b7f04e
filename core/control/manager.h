// Manager: reconciles every Study and Trial of a Store until its caller stops it.
//
// It watches the Store and the Runs, keeps a work queue of objects to reconcile, and lets the two
// controllers read each object, plan it (core/plan.h) and execute the plan. A periodic resync
// enqueues everything, in case a notice was missed. All state is in Store and Runs: a Manager can
// be dropped at any moment, and the next one continues.
//
// When an object is refused repeatedly for the same reason (refusals.h), its Study gets the
// condition Blocked with the message of the refusal, and one warning event. The object is retried
// with a back-off, and the condition is removed once the object is accepted. A refused Trial also
// says so in its condition Waiting.
//
// run() or step() are called from one thread, the first worker; run() adds workers of its own. One
// of several workers takes Trials only: a Study may ask a sampler for seconds, and the ends of
// other Studies' trials must not wait for that. Items are independent, and the queue never hands
// one to two workers, so workers share nothing but the queue, the refusals and the map of samplers.
// wake() and the watch callbacks may come from any thread. Store, Runs, Clock and Observer outlive
// the Manager; callbacks that arrive after its end do nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "core/control/clock.h"
#include "core/control/in_flight.h"
#include "core/control/observer.h"
#include "core/control/refusals.h"
#include "core/control/runs.h"
#include "core/control/store.h"
#include "core/control/work_queue.h"

namespace fettle::control {

struct ManagerOptions {
  std::int64_t resync_ms = 30'000;  // every object is reconciled at least this often
  int max_failures = 10;            // I/O failures in a row of one object; 0 = no limit
  int workers = 1;                  // threads that reconcile, the caller of run() included
  // Whether a namespace was listed completely; until then its objects wait. Empty: always.
  std::function<bool(const std::string& ns)> ready = {};
  // Why the view of a namespace is out of date: a list or watch has failed for a while; "" = it is
  // not. The namespace's Studies show the reason. Empty: never out of date.
  std::function<std::string(const std::string& ns)> trouble = {};
};

struct ReconcileResult;
class StudyController;
class TrialController;

class Manager {
 public:
  Manager(Store& store, Runs& runs, Clock& clock, Observer& observer,
          const ManagerOptions& options = {});
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Works until `finished()` returns true, which the calling thread asks before each of its
  // reconciles and at least once a second. Reconciles in flight are finished; trials keep running.
  // Error: one object failed max_failures times in a row, by an error that is not transient (a full
  // disk, for example). Nothing is lost: another Manager can continue.
  Status run(const std::function<bool()>& finished);

  // Makes run() ask finished() at once. From any thread, not from a signal handler.
  void wake();

  // For the simulator: reconciles the next object that is due; returns false if none is. Errors as
  // run().
  Result<bool> step(Lane lane = Lane::kAll);
  // When step() will have something to do: 0 = now.
  std::int64_t next_ms() const;
  // Objects that are due and wait for a worker, for metrics. From any thread.
  std::size_t queue_depth() const;
  // Time since the slowest reconcile in flight last made progress, ms; 0 = none is in flight. From
  // any thread.
  std::int64_t oldest_reconcile_ms() const { return in_flight_.oldest_ms(); }
  // Records that a call to the outside has ended, whatever its answer; for the thread that made it.
  void note_progress() { in_flight_.progress(); }
  // Objects that are blocked now, for metrics. From any thread.
  std::size_t blocked() const { return refusals_.blocked(); }

 private:
  Status work(const std::function<bool()>& finished, Lane lane);
  Status resync();
  Status resync_now();
  Status settle(const Item& item, const Result<ReconcileResult>& outcome, ReconcileRecord& record);
  void settle_done(const Item& item, const ReconcileResult& result, ReconcileRecord& record);
  void note_refusal(const Item& item, const Error& error, ReconcileRecord& record);
  void write_blocked(const Key& study, ReconcileRecord& record);
  std::string why_blocked(const Key& study) const;
  void write_refused(const Key& trial, const std::string& words, ReconcileRecord& record);
  static void note_unsaid(const std::string& condition, const Status& said,
                          ReconcileRecord& record);
  Key study_of(const Item& item);

  Store& store_;
  Runs& runs_;
  Clock& clock_;
  Observer& observer_;
  const ManagerOptions options_;
  std::shared_ptr<BlockingQueue> queue_;  // shared with the watch callbacks, which may outlive this
  std::unique_ptr<StudyController> studies_;
  std::unique_ptr<TrialController> trials_;
  InFlight in_flight_;
  Refusals refusals_;
  std::atomic<std::int64_t> resync_at_ms_ = 0;
  std::mutex resync_mutex_;  // one worker at a time; guards the members below
  int resyncs_ = 0;          // done by this Manager
  int resync_failures_ = 0;  // in a row
};

}  // namespace fettle::control
