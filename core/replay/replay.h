// Replay: takes the decisions of a Study again from what was recorded, to verify them or to ask
// what other rules would have decided. Every decision recorded its `basis`, the highest seq that it
// saw, so the facts up to it are the knowledge of that time. Pure functions; usable from any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "search/search.h"
#include "search/space/fingerprint.h"

namespace fettle::core {

// The history as it was known when trial `index` was suggested, or when the fact `seq` was judged.
// Trials that were deleted by hand count as failed and have no parameters, as for the planner.
search::History history_before(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                               std::int64_t index);
search::History history_at(const search::History& whole, const std::vector<api::TrialPtr>& trials,
                           std::int64_t seq);

// The point that the Study's algorithm chooses for a trial.
struct ReplayedSuggestion {
  const api::Trial* trial = nullptr;
  std::optional<Json> point;  // absent: the space is exhausted
};

// Labels of trials that `fettle suggest --study` created. Prescribed: the client gave the
// parameters. Priors: how many of the Study's prior observations were known when the trial was
// chosen; absent: all of them.
inline constexpr const char* kPrescribedLabel = "fettle.dev/prescribed";
inline constexpr const char* kPriorsLabel = "fettle.dev/priors";
bool is_prescribed(const api::Trial& trial);

// The suggestion for each trial, in order, from what was known when it was created. Trials that
// took over from another one, replicates, and prescribed trials are left out: no sampler suggested
// their parameters.
// `trials` are all trials of the Study, sorted by index, and must outlive the result. Errors: from
// make_sampler.
Result<std::vector<ReplayedSuggestion>> replay_suggestions(
    const api::Study& study, const std::vector<api::TrialPtr>& trials);

// A decision whose record differs from the replay, in words.
struct Difference {
  std::string trial;
  std::int64_t basis = 0;
  std::string recorded;
  std::string decided;
};

// Numbers that another machine computed are equal if they differ by less than this, relatively
// (docs/decisions/0038).
inline constexpr double kCrossMachineTolerance = 1e-6;

struct Replay {
  std::int64_t suggestions = 0;  // decided again
  std::int64_t close = 0;  // suggestions that agree to kCrossMachineTolerance, and not to the bit
  std::int64_t judgements = 0;    // of rungs
  std::int64_t stops = 0;         // recorded stops among them
  std::int64_t promotions = 0;    // of trials that paused
  std::int64_t replacements = 0;  // of trials that others took over from
  std::int64_t replicates = 0;    // further runs of the leaders
  std::int64_t deleted = 0;       // trials that were deleted
  std::vector<Difference> differences;
  // Fingerprints of other machines that computed decisions (search/space/fingerprint.h), in order.
  std::vector<std::string> elsewhere;
};

// Takes every decision again, on the machine with the fingerprint `computed_by`. Decisions of other
// machines may differ by kCrossMachineTolerance, all others must agree to the bit. Errors: from
// replay_suggestions.
Result<Replay> replay(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                      const std::string& computed_by = search::fingerprint());

}  // namespace fettle::core
