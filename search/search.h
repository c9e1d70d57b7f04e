// Search: chooses the next points (Sampler) and which trials continue (judge).
//
// Both are pure functions of the problem and the history: no clock, no IO, and no randomness except
// from the seed. A sampler reads the history in order; it may cache its state, and gives the same
// answers without the cache. So a restarted Study continues the same search. For the cache's sake
// one sampler serves one history, which only grows: past entries must not change. (A history that
// got shorter is read from the start; use another sampler for another history.) Objectives are
// passed as the user wrote them; each sampler handles directions itself. A Sampler is not
// synchronised; use it from one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::search {

// Revisions of the search: two revisions may suggest different points for the same history. A Study
// keeps the one that it began with (api::SearchPeriod), so that it continues, and is replayed, by
// the same rules. Listed in docs/decisions/0064.
inline constexpr std::int64_t kFirstRevision = 1;
inline constexpr std::int64_t kNewestRevision = 3;

// Everything that stays the same during a Study.
struct Problem {
  // Defined once in search.cpp, because the code is long (docs/decisions/0027).
  Problem();
  Problem(const Problem& other);
  Problem(Problem&& other) noexcept;
  Problem& operator=(const Problem& other);
  Problem& operator=(Problem&& other) noexcept;
  ~Problem();

  std::vector<api::Parameter> parameters;
  std::vector<api::Objective> objectives;
  api::Algorithm algorithm;
  api::Resource resource;
  std::int64_t max_trials = 0;   // 0 = no limit known
  std::int64_t parallelism = 0;  // trials at once; 0 = unknown
  std::optional<api::EarlyStopping> early_stopping;
  std::vector<Json> first_points;             // to try first; parameters may be left out
  std::vector<api::PriorObservation> priors;  // results of earlier Studies (warm_start.h)
  // The most that all trials together may cost, in the unit of Fact::cost; nullopt = no limit
  // known.
  std::optional<double> max_cost;
  // The decision of `auto` about steps (auto.h), for people: a clause. Empty if `auto` decided
  // nothing.
  std::string fidelity;
  // The algorithm that `auto` was settled on, and why (study_problem.h); nullopt = this problem
  // chooses.
  std::optional<api::AlgorithmKind> chosen;
  std::string chosen_because;
  std::int64_t revision = kNewestRevision;
};

// A fact about a trial; events are in the order in which their facts were learnt.
struct Event {
  std::int64_t trial = 0;  // index into History::trials
  api::Fact fact;
};

// The checkpoint that a trial starts from.
struct Origin {
  std::int64_t trial = 0;
  std::int64_t step = 0;
  bool operator==(const Origin&) const = default;
};

// How far a trial may run where trials pause at rungs (promotion.h): it began at rung `bracket` and
// runs to rung `rung`, at until_step. Rung 0 is the lowest.
struct Stage {
  std::int64_t bracket = 0;
  std::int64_t rung = 0;
  std::int64_t until_step = 0;
  bool ended = false;  // stopped for good: it is never promoted
  // In a population (population.h): the checkpoint this trial starts from, the trial it replaces,
  // and for a new trial the trainer's seed, if prescribed.
  std::optional<Origin> parent = std::nullopt;
  std::optional<std::int64_t> replaces = std::nullopt;
  std::optional<std::int64_t> seed = std::nullopt;
  bool is_replicate = false;  // it repeats another trial, and belongs to no bracket
  bool operator==(const Stage&) const = default;
};

// The decision to resume a trial that paused at a rung (rungs/promotion.h).
struct Promotion {
  std::int64_t trial = 0;
  Stage stage;         // the next one
  std::string reason;  // for people: "rung 1 (step 3): 0.71 is among the best 4 of 12"
};

// Everything a sampler may know. `trials[i]` are the active parameters of trial i, in the order of
// creation; trials without a terminal event (Result, Stopped, Failed) are pending. Events are in
// the order of their seq. Trials whose parameters are outside the space (another Study's, an older
// version's) keep their numbers and are otherwise ignored. A trial that paused at a rung has a
// Stopped event there; if it is promoted, its later end replaces that event.
struct History {
  std::vector<Json> trials;
  std::vector<Event> events;
  std::vector<Stage> stages;  // one per trial if trials pause at rungs; otherwise empty
  // The two fields below are for communication between samplers (warm_start.h). The first `priors`
  // trials come from earlier Studies: the sampler learns from them, but they were not tried in this
  // Study. The first `unnumbered` trials include them; the sampler's own choices follow.
  std::int64_t priors = 0;
  std::int64_t unnumbered = 0;
};

struct Suggestion {
  std::vector<Json> points;  // parameters of the next trials, in order
  bool exhausted = false;    // no untried point is left: fewer points than requested
};

// A sampler's predictions for a point, for people; unknown values are absent.
struct Explanation {
  std::string words;                               // "point 7 of the quasi-random start"
  std::optional<double> mean = std::nullopt;       // prediction for the first objective
  std::optional<double> deviation = std::nullopt;  // of that prediction
  std::optional<double> acquisition =
      std::nullopt;  // the quantity maximised; its unit depends on the sampler
  // The predicted cost of running this trial to its end, in the unit of Fact::cost; only if costs
  // count.
  std::optional<double> cost = std::nullopt;
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  // Returns the next n points after `history`. suggest(h, n) equals n calls of suggest(h, 1), each
  // point appended to h.trials as pending. Points have active parameters only, in declaration
  // order, within bounds and on the step. A point of a finite space is never suggested twice,
  // except for members of a population, which may begin alike.
  virtual Suggestion suggest(const History& history, std::int64_t n) = 0;

  // Explains why `point` may be chosen after `history`; nullopt if there is no model.
  virtual std::optional<Explanation> explain(const History& /*history*/, const Json& /*point*/) {
    return std::nullopt;
  }

  // For people: names the sampler in use and, if it was chosen automatically, gives the reason.
  virtual std::string description() const = 0;
};

// Makes the sampler that problem.algorithm names. Error: a space or settings that it cannot search.
Result<std::unique_ptr<Sampler>> make_sampler(const Problem& problem);

enum class Verdict { kContinue, kStop };

struct Judgement {
  Verdict verdict = Verdict::kContinue;
  std::int64_t rung = 0;  // index of the rung that was judged
  std::string reason;     // for people: "asha: rung 1 (step 3): 0.71 is not among the best 4 of 12"
};

// Returns the steps at which a Rung fact is needed, ascending, without resource.max. If trials
// pause: the rungs (promotion.h). For asha: min, min*eta, min*eta^2 ... For the other rules: every
// step, for some of them only from start_step. Empty if nothing is judged before the end.
std::vector<std::int64_t> rung_steps(const api::Algorithm& algorithm,
                                     const std::optional<api::EarlyStopping>& rules,
                                     const api::Resource& resource);

// Whether `trial` continues, given its newest Rung event in `history` and all events before that.
// Events after seq `basis` do not count.
Judgement judge(const Problem& problem, const api::EarlyStopping& rules, const History& history,
                std::int64_t trial, std::int64_t basis = std::numeric_limits<std::int64_t>::max());

}  // namespace fettle::search
