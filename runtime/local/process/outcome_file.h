// OutcomeFile: how a run ended, on disk, even if the disk is full by then.
//
// Room for the outcome is taken before the run starts (outcome.room, kOutcomeRoom bytes), and the
// outcome is written over it if no new file can be made. Readers see all of outcome.json or
// nothing: it gets its name when it is complete. One call at a time for each run.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

// A report is at most 4 KiB, and a message about as much.
inline constexpr std::size_t kOutcomeRoom = 32 << 10;

// Reserves the room. kUnavailable: the disk has none, and nothing is left behind.
Status reserve_outcome(const std::string& run_directory);

// Writes outcome.json and gives back the room, if it was taken.
Status write_outcome_file(const std::string& run_directory, const RunOutcome& outcome);

// Gives back the room of a run that has ended without an outcome.
void release_outcome(const std::string& run_directory);

}  // namespace fettle::local
