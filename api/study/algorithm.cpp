#include "api/study/algorithm.h"

#include <array>
#include <vector>

namespace fettle::api {
namespace {

using A = AlgorithmKind;
using S = StoppingKind;

// In the order of the enums, which is that of messages.
constexpr std::array<AlgorithmTraits, 15> kAlgorithms{{
    {.kind = A::kAuto, .name = "auto", .learns = true, .uses_priors = true, .counts_cost = true},
    {.kind = A::kGrid, .name = "grid", .walks_grid = true},
    {.kind = A::kRandom, .name = "random"},
    {.kind = A::kSobol, .name = "sobol"},
    {.kind = A::kTpe, .name = "tpe", .learns = true, .uses_priors = true, .fits_model = true},
    {.kind = A::kGp,
     .name = "gp",
     .learns = true,
     .uses_priors = true,
     .counts_cost = true,
     .fits_model = true},
    {.kind = A::kEhvi,
     .name = "ehvi",
     .learns = true,
     .uses_priors = true,
     .counts_cost = true,
     .fits_model = true},
    {.kind = A::kPortfolio, .name = "portfolio", .learns = true, .uses_priors = true},
    // cmaes starts at the best of the points that it is given first; later points would force a
    // restart.
    {.kind = A::kCmaes, .name = "cmaes", .learns = true, .breeds = true},
    {.kind = A::kNsga2, .name = "nsga2", .learns = true, .uses_priors = true, .breeds = true},
    // An algorithm that pauses trials has no priors: final results of other Studies say nothing
    // about a rung.
    {.kind = A::kHyperband, .name = "hyperband", .halves = true},
    {.kind = A::kBohb, .name = "bohb", .learns = true, .fits_model = true, .halves = true},
    {.kind = A::kPbt, .name = "pbt", .learns = true, .population = true, .resamples = true},
    {.kind = A::kPb2, .name = "pb2", .learns = true, .population = true},
    {.kind = A::kSchedule, .name = "schedule", .replays = true},
}};

constexpr std::array<StoppingTraits, 7> kStoppingRules{{
    {.kind = S::kAsha, .name = "asha", .has_rungs = true},
    {.kind = S::kMedian, .name = "median", .has_start = true, .compares = true},
    {.kind = S::kPercentile, .name = "percentile", .has_start = true, .compares = true},
    {.kind = S::kPatience, .name = "patience", .has_start = true, .wants_curve = true},
    {.kind = S::kThreshold, .name = "threshold", .has_start = true},
    {.kind = S::kCurve, .name = "curve", .has_start = true, .compares = true, .wants_curve = true},
    {.kind = S::kNone, .name = "none"},
}};

template <class Table>
constexpr bool is_in_order(const Table& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].kind) != i) return false;
  }
  return true;
}
static_assert(is_in_order(kAlgorithms) && is_in_order(kStoppingRules));

// Converts a table of traits to a table of names.
template <class Traits>
auto as_names(std::span<const Traits> table) {
  std::vector<EnumName<decltype(Traits::kind)>> out;
  for (const Traits& row : table) out.push_back({row.kind, row.name});
  return out;
}

}  // namespace

std::span<const AlgorithmTraits> all_algorithms() { return kAlgorithms; }
std::span<const StoppingTraits> all_stopping_rules() { return kStoppingRules; }

const AlgorithmTraits& traits(AlgorithmKind kind) {
  return kAlgorithms[static_cast<std::size_t>(kind)];
}
const StoppingTraits& traits(StoppingKind kind) {
  return kStoppingRules[static_cast<std::size_t>(kind)];
}

bool replaces_trials(AlgorithmKind kind) { return traits(kind).population || traits(kind).replays; }
bool pauses_trials(AlgorithmKind kind) { return traits(kind).halves || replaces_trials(kind); }

EnumNames<AlgorithmKind> names_of(AlgorithmKind /*any*/) {
  static const auto kNames = as_names(all_algorithms());
  return kNames;
}
EnumNames<StoppingKind> names_of(StoppingKind /*any*/) {
  static const auto kNames = as_names(all_stopping_rules());
  return kNames;
}

}  // namespace fettle::api
