// Tables of traits: one row for each search algorithm and for each early-stopping rule.
//
// The names in documents, the schema, the predicates below and the fields that a document may set
// follow from these tables. A new sampler is a value and a row here, and a line in
// search/factory/make_sampler.cpp that makes it. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "api/fields/enum_names.h"

namespace fettle::api {

enum class AlgorithmKind {
  kAuto,
  kGrid,
  kRandom,
  kSobol,
  kTpe,
  kGp,
  kEhvi,
  kPortfolio,
  kCmaes,
  kNsga2,
  kHyperband,
  kBohb,
  kPbt,
  kPb2,
  kSchedule,
};
EnumNames<AlgorithmKind> names_of(AlgorithmKind /*any*/);

struct AlgorithmTraits {
  AlgorithmKind kind = AlgorithmKind::kAuto;
  std::string_view name;
  bool learns = false;       // later points depend on earlier results
  bool uses_priors = false;  // learns from results of other Studies (warmStart.studies)
  bool counts_cost = false;  // can weigh gain against cost (costAware)
  bool fits_model = false;   // has startupTrials and candidates
  bool walks_grid = false;   // has points and shuffle
  bool breeds = false;       // has generations (populationSize)
  bool halves = false;       // trials pause at rungs, and the best are promoted (reductionFactor)
  bool population = false;   // copies of the best trials replace the worst (interval, quantile)
  bool resamples = false;    // a population that draws some values again (resampleProbability)
  bool replays = false;      // repeats the legs of a trial of a population (legs)
};

const AlgorithmTraits& traits(AlgorithmKind kind);
// Returns the name that documents use, for messages.
inline std::string name_of(AlgorithmKind kind) { return std::string(traits(kind).name); }

// Whether a trial may start from another trial's checkpoint: populations and schedules.
// budget.trials does not count such trials.
bool replaces_trials(AlgorithmKind kind);
// Whether the algorithm also decides which trials continue: they pause at rungs or intervals. It
// excludes earlyStopping.
bool pauses_trials(AlgorithmKind kind);

enum class StoppingKind { kAsha, kMedian, kPercentile, kPatience, kThreshold, kCurve, kNone };
EnumNames<StoppingKind> names_of(StoppingKind /*any*/);

struct StoppingTraits {
  StoppingKind kind = StoppingKind::kNone;
  std::string_view name;
  bool has_rungs = false;    // judges at rungs alone (reductionFactor, promote), else at each step
  bool has_start = false;    // stops nothing before startStep
  bool compares = false;     // needs minTrials others at the same step
  bool wants_curve = false;  // reads the values before startStep as well
};

const StoppingTraits& traits(StoppingKind kind);
inline std::string name_of(StoppingKind kind) { return std::string(traits(kind).name); }

std::span<const AlgorithmTraits> all_algorithms();
std::span<const StoppingTraits> all_stopping_rules();

// Lists the rows of a table for which `trait` holds: "name: hyperband or bohb".
template <class Traits>
std::string names_with(std::span<const Traits> table, bool Traits::*trait) {
  std::string out;
  std::size_t left = 0;  // rows that are not written yet; "or" precedes the last
  for (const Traits& row : table) left += row.*trait ? 1 : 0;
  for (const Traits& row : table) {
    if (!(row.*trait)) continue;
    out += out.empty() ? "name: " : left == 1 ? " or " : ", ";
    out += row.name;
    --left;
  }
  return out;
}

// Returns names_with(), made once: FieldRules holds a view, so the text lives until the exit.
template <bool AlgorithmTraits::*kTrait>
std::string_view algorithms_with() {
  static const std::string kText = names_with(all_algorithms(), kTrait);
  return kText;
}
template <bool StoppingTraits::*kTrait>
std::string_view stopping_rules_with() {
  static const std::string kText = names_with(all_stopping_rules(), kTrait);
  return kText;
}

}  // namespace fettle::api
