// SuggestSearch: the search of a suggest session: which trials an ask hands out, and what a report
// means for its trial.
//
// Each step is written to the journal before it counts, so an error leaves everything as it was.
// Search, seeds and answers are the same as in `fettle run` (search/search.h). Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "cli/suggest/suggest_journal.h"
#include "cli/suggest/suggest_result.h"
#include "cli/suggest/suggest_trials.h"
#include "search/search.h"

namespace fettle::cli {

// A trial that an ask hands out.
struct HandedTrial {
  std::size_t trial = 0;
  bool resumes = false;   // from its checkpoint
  bool again = false;     // it was handed out before, and its process was lost
  bool is_known = false;  // this session has handed it out before
};

struct Asked {
  std::vector<HandedTrial> trials;
  bool is_over = false;  // fewer than wanted, and no more will come
};

class SuggestSearch {
 public:
  // `known`: the trials so far; a running trial is handed out again. Errors: make_sampler's.
  static Result<std::unique_ptr<SuggestSearch>> make(const api::StudySpec& spec,
                                                     search::Problem problem, SuggestTrials known,
                                                     std::unique_ptr<SuggestJournal> journal);

  const api::StudySpec& spec() const { return spec_; }
  const SuggestTrials& trials() const { return trials_; }

  // At most `wanted` trials: first waiting trials, then paused trials that resume, then new trials.
  Result<Asked> ask(std::int64_t wanted);
  // A running trial's values on the way: "continue", "stop" or "pause".
  Result<std::string_view> report(std::size_t trial, const ToldResult& result);
  // The result of a trial that has not ended.
  Status tell(std::size_t trial, const ToldResult& result);
  // Adds points to try before others.
  Status add_first(const std::vector<Json>& points);
  // Adds results from elsewhere.
  Status add_priors(std::vector<api::PriorObservation> priors);

 private:
  SuggestSearch(const api::StudySpec& spec, search::Problem problem, SuggestTrials known,
                std::unique_ptr<SuggestJournal> journal);
  struct Verdict;

  bool no_more() const { return exhausted_ || missing() <= 0; }
  std::int64_t missing() const;
  std::int64_t room(const Asked& asked, std::int64_t wanted) const;
  Status fill(std::int64_t wanted, Asked& out);
  Status hand_out_waiting(std::int64_t wanted, Asked& out);
  Status continue_paused(std::int64_t wanted, Asked& out);
  Status promote(const search::Promotion& promotion, Asked& out);
  Status create(std::int64_t wanted, Asked& out);
  Status begin(Json parameters, const search::Stage& stage, TrialState state, bool prescribed);
  void put_back(const Asked& asked);
  Verdict judge_report(std::size_t trial, const ToldResult& result);
  Status record(std::size_t trial, const ToldResult& result, std::size_t facts_before,
                const Verdict& verdict, bool told);
  Status finish_if_over();

  const api::StudySpec spec_;
  search::Problem problem_;
  const std::unique_ptr<SuggestJournal> journal_;
  const bool promotes_;
  const std::vector<std::int64_t> rungs_;
  std::unique_ptr<search::Sampler> sampler_;
  SuggestTrials trials_;
  std::deque<std::size_t> waiting_;  // to be handed out before all others
  bool exhausted_ = false;           // the space had no point left
};

}  // namespace fettle::cli
