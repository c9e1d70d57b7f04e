// Questions about trials that their objects answer: how far they are, how they ended, their facts.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "search/search.h"

namespace fettle::core {

// The index of the next trial. `created` is the count in the Study's status: an index is not used
// again if its trial, the newest, was deleted by hand.
std::int64_t next_index(const std::vector<api::TrialPtr>& trials, std::int64_t created);

// The step that the newest run of a completed trial was asked for. Exit code 0 means that it was
// reached, even if the last report is of an earlier step (reached_step).
std::int64_t completed_step(const api::Trial& trial);

// Whether trials have more than one step.
bool counts_steps(const api::StudySpec& spec);

// The step of the newest report. A final report counts as a report of the step that the newest run
// was `asked` for, even if it names an earlier one: programs need not report steps.
std::int64_t reached_step(const api::TrialStatus& status, std::int64_t asked);

// Whether the trial is pending, running or suspended, or was promoted and its next run has not been
// planned yet, or paused and is to fail (kNoResult).
bool is_active(const api::Trial& trial);

// Whether the trial will never continue and its facts say how it ended: its learning curve is not
// needed any more.
bool is_done(const api::Trial& trial);

// A leg is the training from one pause to the next: a trial that ended or paused has had one, plus
// one for each promotion whose run was planned. ends_of() counts the legs whose end is a fact.
std::int64_t legs_of(const api::Trial& trial);
std::int64_t ends_of(const api::Trial& trial);

// The trial's stage in a Study whose trials pause at rungs. References to trials with an index of
// `count` or more are dropped.
search::Stage stage_of(const api::Trial& trial, std::int64_t count);

// The trial of this name, or nullptr. `trials` are sorted by index; fast for names that
// trial_name() gives.
api::TrialPtr find_trial(const std::vector<api::TrialPtr>& trials, const std::string& name);

// Whether the trial repeats another one with a seed of its own (replicates.h).
inline bool is_replicate(const api::Trial& trial) { return !trial.spec.search.replicates.empty(); }

// The reason in the stop of a trial that early stopping stopped.
inline constexpr const char* kEarlyStopped = "EarlyStopped";
// The reason in the stop of a trial that paused without a value and will never report one: it
// fails.
inline constexpr const char* kNoResult = "NoResult";
// The reason in the stop, and in the condition Complete, of a trial that no GPU here can hold.
inline constexpr std::string_view kNoSuchGpuMemory = "NoSuchGpuMemory";

// The newest fact of this kind, or nullptr.
const api::Fact* newest_fact(const api::Trial& trial, api::FactKind kind);

// The newest fact about how the trial ended or paused, or nullptr.
const api::Fact* newest_end(const api::Trial& trial);

}  // namespace fettle::core
