// StudyController: reads a Study and its Trials, plans, carries the plan out.
//
// The facts of a Study are in one order (Fact::seq), and it alone gives them their places: in a
// look, or together with the end of a trial (store_end). Whoever does holds Memory::order until
// the facts are stored, so a fact is never stored after one that follows it.
// Used by the Manager, from its workers; different Studies at the same time, and store_end() beside
// a look at the same Study.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/clock.h"
#include "control/observer.h"
#include "control/reconcile_result.h"
#include "control/runs.h"
#include "control/store.h"
#include "core/ledger.h"
#include "core/plan.h"
#include "search/search.h"

namespace fettle::control {

class StudyController {
 public:
  StudyController(Store& store, Runs& runs, Clock& clock, Observer& observer)
      : store_(store), runs_(runs), clock_(clock), observer_(observer) {}

  // Errors are those of the first action that failed; the actions before it are done.
  // A Study that is gone is no error.
  Result<ReconcileResult> reconcile(const Key& key);

  // Stores a trial that has ended, in one write with the facts about it. The facts are left to the
  // next look where their places are not known (since the start, or since a failure) or a look is
  // deciding and takes long.
  Result<api::Trial> store_end(const api::Study& study, const api::Trial& ended);

  // Gives the Study the condition Blocked with these words, or takes it away where there are none.
  // Writes nothing that is there already; a Study that is gone is no error.
  Status set_blocked(const Key& key, const std::string& words);

 private:
  // What is kept between the looks at a Study: caches of what follows from what is stored. A
  // sampler lasts until the history is another one than a longer one: after a change of the spec,
  // or when somebody deletes a trial.
  struct Memory {
    core::Ledger ledger;
    std::int64_t folded = -1;  // ledger.rebuilds() when the sampler was made
    std::unique_ptr<search::Sampler> sampler;

    // The place of the newest fact; absent where that is not known.
    std::optional<std::int64_t> newest_seq;
    std::timed_mutex order;  // guards all of it

    void clear();
  };
  using Order = std::unique_lock<std::timed_mutex>;
  // The objects of one look, as last written.
  struct Objects {
    api::Study study;
    const std::vector<api::TrialPtr>& listed;
    std::map<std::string, api::TrialPtr> written;  // by name

    // The trial of an action; null if there is none.
    api::TrialPtr find(const std::string& name) const;
  };

  void forget(const Key& key);
  std::shared_ptr<Memory> memory_of(const Key& key);
  std::shared_ptr<Memory> find_memory(const Key& key);  // null where there is none
  Result<search::Sampler*> sampler_of(const api::Study& study, Memory& memory);
  Status check(const api::Study& study, const std::vector<api::TrialPtr>& trials);
  core::StudyPlan plan_warm_start(const api::Study& study, Memory& memory);
  Result<core::StudyPlan> plan(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                               core::Capacity room, Memory& memory);
  // Once it is written down what chooses the trials (core/search_period.h).
  core::StudyPlan plan_settled(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                               core::Capacity room, Memory& memory);
  Status carry_out(const core::StudyPlan& plan, Objects& objects, ReconcileResult& result,
                   Order order, Memory& memory);
  void record_what_is_known(const Key& key);
  Status execute(const core::StudyAction& action, Objects& objects);
  Status create(const api::Trial& trial, const api::Study& study);
  Status record_facts(const core::RecordFacts& action, Objects& objects);
  Status update_spec(const core::UpdateTrialSpec& action, Objects& objects);
  void note(const core::EventNote& event, const api::Study& study);

  Store& store_;
  Runs& runs_;
  Clock& clock_;
  Observer& observer_;
  std::mutex mutex_;
  // The map is guarded by mutex_.
  std::map<Key, std::shared_ptr<Memory>> memories_;
};

}  // namespace fettle::control
