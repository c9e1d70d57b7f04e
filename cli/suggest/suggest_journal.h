// SuggestJournal: what a suggest session writes down before it acts.
//
// Each call is one step of the session. It returns once the step is durable. After an error all
// later steps fail, too. This base class keeps nothing: the study ends with the process.
// Not synchronised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "search/search.h"

namespace fettle::cli {

// How a trial is after a step. A waiting one was not handed out yet; a paused one waits at its rung
// for an ask to resume it.
enum class TrialState { kWaiting, kRunning, kPaused, kEnded };

// A trial as it is created.
struct TrialBirth {
  std::int64_t index = 0;
  const Json& parameters;
  const search::Stage& stage;
  std::int64_t basis = 0;   // the highest seq known
  bool prescribed = false;  // by the client (`first`): no sampler chose it
  bool waits = false;       // to be handed out later
};

// An addition to a trial by a tell or a report.
struct TrialProgress {
  std::int64_t index = 0;
  const api::Report& report;
  const std::vector<api::Fact>& facts;  // in order, seq set; may be empty
  TrialState state = TrialState::kRunning;
  bool told = false;        // by a tell
  std::string stop_reason;  // why early stopping stopped it; "" = it did not
};

class SuggestJournal {
 public:
  virtual ~SuggestJournal() = default;
  // The search in words, before the first step.
  virtual void describe(const std::string& /*algorithm*/) {}
  virtual Status create(const TrialBirth& /*birth*/) { return success(); }
  // A trial that waited is handed out.
  virtual Status hand_out(std::int64_t /*index*/) { return success(); }
  // A paused trial resumes.
  virtual Status promote(std::int64_t /*index*/, const search::Stage& /*stage*/,
                         std::int64_t /*basis*/) {
    return success();
  }
  // A paused trial ends: trial `by` takes its place.
  virtual Status replace(std::int64_t /*index*/, std::int64_t /*by*/) { return success(); }
  virtual Status record(const TrialProgress& /*progress*/) { return success(); }
  // Results from elsewhere, for the next trials.
  virtual Status add_priors(const std::vector<api::PriorObservation>& /*priors*/) {
    return success();
  }
  // No trial runs or pauses, and none will come.
  virtual Status finish(bool /*exhausted*/) { return success(); }
};

}  // namespace fettle::cli
