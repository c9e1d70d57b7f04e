// ReplayHistory: the knowledge about a Study whose trials pause at rungs, decision by decision: the
// facts up to a basis, and each trial at the stage to which the decisions so far had sent it. For
// replay_rungs.h and replay_population.h. Pure; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/replay/replay.h"
#include "search/search.h"

namespace fettle::core {

// A promotion that was recorded.
struct RecordedPromotion {
  const api::Trial* trial = nullptr;
  std::int64_t until_step = 0;
};

// The decisions that rest on the same facts.
struct DecisionsOf {
  std::vector<RecordedPromotion> promotions;
  std::vector<const api::Trial*> created;  // by index
};

// The promotion in `recorded` that equals `decided`, or the end.
std::vector<RecordedPromotion>::iterator find_same(std::vector<RecordedPromotion>& recorded,
                                                   const search::Promotion& decided);

// The step of a rung; clamped, because the ladder may have been shortened since.
std::int64_t step_of_rung(const std::vector<std::int64_t>& ladder, std::int64_t rung);

// Returns the recorded decisions by basis. `trials` are sorted by index and must outlive the
// answer.
std::map<std::int64_t, DecisionsOf> recorded_decisions(const std::vector<api::TrialPtr>& trials);

class ReplayHistory {
 public:
  ReplayHistory(const api::Study& study, const std::vector<api::TrialPtr>& trials);

  // The whole recorded history, and the part that is known by now.
  const search::History& whole() const { return whole_; }
  const search::History& known() const { return known_; }
  std::int64_t basis() const { return basis_; }

  // Learns all facts up to `basis`, which rises from call to call.
  void learn(std::int64_t basis);
  // Adds a created trial, in the order of indices, at the stage `stage`.
  void begin(const api::Trial& trial, const search::Stage& stage);
  // Adds the deleted trials with an index below `index`, in the form that history_of gives them.
  void add_deleted_before(std::int64_t index);
  void promote(const RecordedPromotion& promotion);

  // A difference at the present basis.
  Difference difference(const api::Trial& trial, std::string recorded, std::string decided) const;
  // "s-3 continues to epoch 9", for people.
  std::string words(const RecordedPromotion& promotion) const;
  std::string words(const search::Promotion& promotion) const;

 private:
  const api::Study& study_;
  const search::History whole_;
  std::map<std::int64_t, const api::Trial*> by_index_;
  search::History known_;
  std::size_t events_ = 0;  // of whole_, learnt so far
  std::int64_t basis_ = 0;
};

}  // namespace fettle::core
