// Search: what to try next (Sampler) and which trials continue (judge).
//
// Both are pure functions of the problem and the history: no clock, no randomness but what follows
// from the seed, no IO. A sampler is a fold over the history in order; it may cache what it folded,
// and gives the same answers without the cache. So a restarted study continues the same search.
// For the cache's sake one sampler is asked about one history that grows: what it saw stays as it
// was. (A history that got shorter is read from the start; for another one, make another sampler.)
// Objectives are handed over as the user sees them; each sampler turns directions around itself.
// A Sampler is not synchronised; use it from one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "api/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::search {

// Revisions of the search: which points follow from the same history. A Study keeps the one that it
// began with (api::SearchPeriod), so that it goes on, and is replayed, as it was decided. They are
// listed in docs/decisions/0064.
inline constexpr std::int64_t kFirstRevision = 1;
inline constexpr std::int64_t kNewestRevision = 2;

// Everything that stays the same during a Study.
struct Problem {
  // Defined in search.cpp: long code, once (docs/decisions/0027).
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
  std::int64_t parallelism = 0;  // trials at once; 0 = not known
  std::optional<api::EarlyStopping> early_stopping;
  std::vector<Json> first_points;             // to try first; parameters may be left out
  std::vector<api::PriorObservation> priors;  // what earlier Studies found (warm_start.h)
  // What all trials together may cost, in the unit of Fact::cost; nothing = no limit known.
  std::optional<double> max_cost;
  // What `auto` decided about steps (auto.h), for people: a clause. Empty where it had no say.
  std::string fidelity;
  // What `auto` was settled to stand for, and why (study_problem.h); nothing = this problem
  // chooses.
  std::optional<api::AlgorithmKind> chosen;
  std::string chosen_because;
  std::int64_t revision = kNewestRevision;
};

// One thing that was learnt about a trial, in the order in which it was learnt.
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

// How far a trial has been sent where trials pause at rungs (promotion.h): from rung `bracket`,
// where it began, to rung `rung`, which is at until_step. Rung 0 is the lowest.
struct Stage {
  std::int64_t bracket = 0;
  std::int64_t rung = 0;
  std::int64_t until_step = 0;
  bool ended = false;  // stopped for good: it is never promoted
  // Where trials take over from others (population.h): whose weights this one starts with, and
  // whose place it has taken. Of a new trial also the trainer's seed, if that is prescribed.
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

// All there is to know. `trials[i]` are the parameters of trial i (active ones only), in the order
// of creation; trials without a terminal event (Result, Stopped, Failed) are pending. The order of
// events is that of their seq. Trials whose parameters are not of the space (another study's, an
// older version's) are numbered like the others and otherwise passed over. A trial that paused at a
// rung has a Stopped event there; if it is promoted, its later end replaces that.
struct History {
  std::vector<Json> trials;
  std::vector<Event> events;
  std::vector<Stage> stages;  // one a trial where trials pause at rungs; otherwise empty
  // The two below are for samplers among themselves (warm_start.h). The first `priors` trials are
  // those of earlier Studies: learnt from, but not tried in this one. What the sampler itself chose
  // comes after the first `unnumbered` trials, which include them.
  std::int64_t priors = 0;
  std::int64_t unnumbered = 0;
};

struct Suggestion {
  std::vector<Json> points;  // parameters of the next trials, in order
  bool exhausted = false;    // fewer than asked for: the finite space has no untried point left
};

// What a sampler holds of a point, for people; what it has no opinion of is absent.
struct Explanation {
  std::string words;                               // "point 7 of the quasi-random start"
  std::optional<double> mean = std::nullopt;       // of the first objective, predicted
  std::optional<double> deviation = std::nullopt;  // of that prediction
  std::optional<double> acquisition =
      std::nullopt;  // what was maximised; its unit is the sampler's
  // What a trial there is predicted to cost, to its end, where that counts; in the unit of
  // Fact::cost.
  std::optional<double> cost = std::nullopt;
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  // The next n points after those in `history`. suggest(h, n) equals n times suggest(h, 1), each
  // point appended to h.trials as pending. Active parameters only, in declaration order, within
  // bounds and on the step; never a point of a finite space twice (but for members of a population,
  // which may begin alike).
  virtual Suggestion suggest(const History& history, std::int64_t n) = 0;

  // Why `point` may be chosen after `history`; nothing where there is no model to ask.
  virtual std::optional<Explanation> explain(const History& /*history*/, const Json& /*point*/) {
    return std::nullopt;
  }

  // For people: the sampler in use and, where it was chosen automatically, why.
  virtual std::string description() const = 0;
};

// The sampler that problem.algorithm names. Error: a space or settings it cannot search with.
Result<std::unique_ptr<Sampler>> make_sampler(const Problem& problem);

enum class Verdict { kContinue, kStop };

struct Judgement {
  Verdict verdict = Verdict::kContinue;
  std::int64_t rung = 0;  // index of the rung that was judged
  std::string reason;     // for people: "asha: rung 1 (step 3): 0.71 is not among the best 4 of 12"
};

// The steps at which a Rung fact is wanted, ascending, resource.max excluded: where trials pause,
// the rungs (promotion.h); for asha min, min*eta, min*eta^2 ...; for the other rules every step,
// for some of them only from start_step. Empty where nothing is judged on the way.
std::vector<std::int64_t> rung_steps(const api::Algorithm& algorithm,
                                     const std::optional<api::EarlyStopping>& rules,
                                     const api::Resource& resource);

// Whether `trial` continues, given its newest Rung event in `history` and all events before that.
// Events after seq `basis` do not count.
Judgement judge(const Problem& problem, const api::EarlyStopping& rules, const History& history,
                std::int64_t trial, std::int64_t basis = std::numeric_limits<std::int64_t>::max());

}  // namespace fettle::search
