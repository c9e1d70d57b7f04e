// Notes about the trials that a reader of the page asks about first: why the point was chosen, and
// the end of the log. Both cost too much to have for each of thousands of trials.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

inline constexpr std::size_t kMostNotes = 24;       // trials
inline constexpr std::size_t kLogTailBytes = 4096;  // of each log

// Returns the names of at most kMostNotes trials: the best, then one of each cause of failure, then
// the other results, best first. Pure.
std::vector<std::string> trials_of_interest(const RunView& view);

enum class Logs { kEnds, kNone };

// Returns {"trial": {"why", "log", "where", "missing"} ...}: what `fettle why` prints, the last
// lines of the newest run's log, its file or the command that prints it, and why there is no log.
// With kNone only "why".
Json trial_notes(StudySource& source, const SeenStudy& seen, Logs logs);

}  // namespace fettle::cli
