// StudyController: reads a Study and its Trials, plans, and carries the plan out.
//
// A reconcile has two halves. The first one stores what the trials' statuses show as facts. The
// second one decides on the basis of these facts; it may ask a sampler and take seconds. The facts
// of a Study are numbered (Fact::seq), and only this class numbers them: in the first half of a
// reconcile, or together with the end of a trial (store_end). Both hold Cache::facts_mutex until
// the facts are stored, so they are stored in the order of their numbers. The second half does not
// hold it: a trial that ends meanwhile gets facts with a seq above the basis of the decision in
// progress, and the next reconcile sees them.
//
// Used by the Manager, from its workers; different Studies at the same time, and store_end() beside
// a reconcile of the same Study.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/control/check_back_off.h"
#include "core/control/clock.h"
#include "core/control/observer.h"
#include "core/control/reconcile_result.h"
#include "core/control/runs.h"
#include "core/control/store.h"
#include "core/plan.h"
#include "core/study/ledger.h"
#include "search/search.h"

namespace fettle::control {

class StudyController {
 public:
  StudyController(Store& store, Runs& runs, Clock& clock, Observer& observer)
      : store_(store), runs_(runs), clock_(clock), observer_(observer) {}

  // Returns the error of the first action that failed; the actions before it are done. A Study that
  // is gone is no error.
  Result<ReconcileResult> reconcile(const Key& key);

  // Stores a trial that has ended, in one write with the facts about it. Leaves the facts to the
  // next reconcile of the Study if the newest seq is not known (before its first reconcile, or
  // after a failed write), or if the lock takes longer than kMaxWaitForFacts. Never waits for a
  // sampler.
  Result<api::Trial> store_end(const api::Study& study, const api::Trial& ended);

  // Sets the Study's condition Blocked with the message `words`; clears it if they are empty.
  // Writes only changes; a Study that is gone is no error.
  Status set_blocked(const Key& key, const std::string& words);

 private:
  // The state that store_end() needs to number facts.
  struct FactOrder {
    core::StudyVersion study;
    std::vector<std::int64_t> rungs;  // search::rung_steps
    std::int64_t newest_seq = 0;
  };
  // Kept between the reconciles of a Study. All of it can be derived from stored objects.
  struct Cache {
    std::mutex mutex;  // held by a reconcile from its first to its last action
    core::Ledger ledger;
    // Replaced when the history is rebuilt: after a change of the spec, or of a deleted trial.
    std::unique_ptr<search::Sampler> sampler;
    std::int64_t sampler_rebuilds = -1;  // ledger.rebuilds() when the sampler was made
    CheckBackOff checks;

    std::timed_mutex facts_mutex;  // taken after `mutex`; held while facts are numbered and stored
    std::optional<FactOrder> facts;  // absent if the newest seq is not known

    void clear();  // everything that depends on trials, except `facts`
  };
  // The objects of one reconcile, as last written.
  struct Objects {
    api::Study study;
    std::vector<api::TrialPtr> listed = {};
    std::map<std::string, api::TrialPtr> written = {};  // by name

    // The trial of an action; null if it does not exist.
    api::TrialPtr find(const std::string& name) const;
  };
  // The state of one reconcile.
  struct Pass {
    // Not an aggregate: GCC 12 would warn of uninitialised members in its exception path.
    Pass(Objects all, core::Capacity capacity, Cache& kept, std::int64_t now)
        : objects(std::move(all)), room(std::move(capacity)), cache(kept), now_ms(now) {}

    Objects objects;
    core::Capacity room;
    Cache& cache;
    const std::int64_t now_ms;
    ReconcileResult result = {};
  };

  void forget(const Key& key);
  std::shared_ptr<Cache> cache_of(const Key& key);
  std::shared_ptr<Cache> find_cache(const Key& key);  // null if the Study has none
  Status advance(Pass& pass);
  Result<bool> learn(Pass& pass);
  Status decide(Pass& pass);
  Status carry_out(const core::StudyPlan& plan, Pass& pass);
  Result<std::optional<core::StudyPlan>> plan_without_search(const Pass& pass);
  core::StudyPlan plan_warm_start(const api::Study& study, std::int64_t now_ms);
  Status check(const Pass& pass);
  Status record_search_period(Pass& pass);
  static Status refresh_sampler(const api::Study& study, Cache& cache);
  void advance_without_new_trials(const Key& key, Cache& cache);
  Status execute(const core::StudyAction& action, Objects& objects);
  Status create(const api::Trial& trial, const api::Study& study);
  Status record_facts(const core::RecordFacts& action, Objects& objects);
  Status update_spec(const core::UpdateTrialSpec& action, Objects& objects);
  void record_event(const core::EventNote& event, const api::Study& study);

  Store& store_;
  Runs& runs_;
  Clock& clock_;
  Observer& observer_;
  std::mutex mutex_;  // guards the map, not the caches
  std::map<Key, std::shared_ptr<Cache>> caches_;
};

}  // namespace fettle::control
