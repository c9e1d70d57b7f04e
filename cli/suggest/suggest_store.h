// SuggestStore: the journal of `fettle suggest --study`: a Study and its trials in the store that
// `fettle run` uses, so that every command that reads a Study reads this one.
//
// Invariant: a step is in the store before the session replies to it. A step of two writes that was
// cut between them is finished or forgotten by the next open(). One process at a time has the Study
// (StudyLock). Not synchronised.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"
#include "cli/suggest/suggest.h"
#include "cli/suggest/suggest_journal.h"
#include "core/control/clock.h"
#include "core/plan.h"
#include "core/study/ledger.h"
#include "runtime/local/store/sqlite_store.h"
#include "runtime/local/store/study_lock.h"

namespace fettle::cli {

class SuggestStore final : public SuggestJournal {
 public:
  // Takes the lock of the Study. kUnavailable: a runner or another session has it. kIo: the
  // directory or the store cannot be used.
  static Result<std::unique_ptr<SuggestStore>> open(const SuggestPlace& place);

  // Writes the newest status of the Study.
  ~SuggestStore() override;
  SuggestStore(const SuggestStore&) = delete;
  SuggestStore& operator=(const SuggestStore&) = delete;

  // Begins the Study, or continues the stored one if it is the same but for its limits.
  Status begin(const api::Study& wanted);
  const api::Study& study() const { return study_; }
  const std::vector<api::TrialPtr>& trials() const { return trials_; }

  void describe(const std::string& algorithm) override { algorithm_ = algorithm; }
  Status create(const TrialBirth& birth) override;
  Status hand_out(std::int64_t index) override;
  Status promote(std::int64_t index, const search::Stage& stage, std::int64_t basis) override;
  Status replace(std::int64_t index, std::int64_t by) override;
  Status record(const TrialProgress& progress) override;
  Status add_priors(const std::vector<api::PriorObservation>& priors) override;
  Status finish(bool exhausted) override;

 private:
  SuggestStore(local::StudyLock lock, std::string name)
      : lock_(std::move(lock)), name_(std::move(name)) {}

  Status load();
  Status adopt_limits(const api::Study& wanted);
  Status mend(std::size_t index);
  const api::Trial& at(std::int64_t index) const;
  // Store a part of a trial, and keep the trial as it is stored then.
  Status write_spec(const api::Trial& trial);
  Status write_status(const api::Trial& trial);
  Status keep(Result<api::Trial> written);
  api::Trial born(const TrialBirth& birth) const;
  // The first failed write ends the session: memory and store may differ then.
  Error fail(const Error& error);
  // Brings the Study's status up to date, which is derived: an error is left to the next step.
  void write_study(bool at_once = false);
  void apply(const core::StudyPlan& plan, std::int64_t now_ms);

  const local::StudyLock lock_;
  const std::string name_;
  const std::shared_ptr<control::Clock> clock_ = std::make_shared<control::SystemClock>();
  std::unique_ptr<local::SqliteStore> store_;
  api::Study study_;
  std::vector<api::TrialPtr> trials_;  // by index
  core::Ledger ledger_;
  std::string algorithm_;
  std::optional<Error> failure_;  // of the first failed write
  bool is_over_ = false;
  bool exhausted_ = false;
};

}  // namespace fettle::cli
