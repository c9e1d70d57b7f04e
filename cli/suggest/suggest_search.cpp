#include "cli/suggest/suggest_search.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/study/algorithm.h"
#include "cli/suggest/suggest_points.h"
#include "search/rungs/population.h"
#include "search/rungs/promotion.h"

namespace fettle::cli {
namespace {

Status check_count(std::size_t priors) {
  if (priors <= api::kMaxPriorObservations) return success();
  return invalid("known: there would be " + std::to_string(priors) +
                 " results from elsewhere, and a study takes at most " +
                 std::to_string(api::kMaxPriorObservations) + "; leave out old and poor ones");
}

}  // namespace

// The consequences of a report for its trial.
struct SuggestSearch::Verdict {
  std::string_view decision = "continue";
  TrialState state = TrialState::kRunning;
  std::size_t next_rung = 0;
  std::string stop_reason{};
};

Result<std::unique_ptr<SuggestSearch>> SuggestSearch::make(
    const api::StudySpec& spec, search::Problem problem, SuggestTrials known,
    std::unique_ptr<SuggestJournal> journal) {
  FETTLE_TRY(check_count(problem.priors.size()));
  FETTLE_ASSIGN(std::unique_ptr<search::Sampler> sampler, search::make_sampler(problem));
  journal->describe(sampler->description());
  std::unique_ptr<SuggestSearch> out(
      new SuggestSearch(spec, std::move(problem), std::move(known), std::move(journal)));
  out->sampler_ = std::move(sampler);
  return out;
}

SuggestSearch::SuggestSearch(const api::StudySpec& spec, search::Problem problem,
                             SuggestTrials known, std::unique_ptr<SuggestJournal> journal)
    : spec_(spec),
      problem_(std::move(problem)),
      journal_(std::move(journal)),
      promotes_(search::promotes(problem_)),
      rungs_(search::rung_steps(problem_.algorithm, problem_.early_stopping, problem_.resource)),
      trials_(std::move(known)) {
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    SuggestTrial& entry = trials_.at(trial);
    entry.again = entry.state == TrialState::kRunning;
    if (entry.again || entry.state == TrialState::kWaiting) waiting_.push_back(trial);
  }
}

Result<Asked> SuggestSearch::ask(std::int64_t wanted) {
  Asked out;
  const Status status = fill(wanted, out);
  if (!status.ok()) {
    put_back(out);
    return status.error();
  }
  for (HandedTrial& handed : out.trials) {
    handed.is_known = std::exchange(trials_.at(handed.trial).is_known, true);
  }
  return out;
}

Status SuggestSearch::fill(std::int64_t wanted, Asked& out) {
  FETTLE_TRY(hand_out_waiting(wanted, out));
  FETTLE_TRY(continue_paused(wanted, out));
  FETTLE_TRY(create(wanted, out));
  // create() may have exhausted the space. Then no further results will come, and trials that
  // waited for them are promoted now.
  if (no_more()) FETTLE_TRY(continue_paused(wanted, out));
  // If trials pause, a running one may still lead to a promotion. Otherwise the trials that
  // create() did not return will never come.
  const bool may_come = promotes_ && search::any_runs(problem_, trials_.history());
  out.is_over = room(out, wanted) > 0 && !may_come;
  return out.is_over ? finish_if_over() : success();
}

// The trials of an ask that failed, which its client never saw, come with the next one.
void SuggestSearch::put_back(const Asked& asked) {
  for (auto handed = asked.trials.rbegin(); handed != asked.trials.rend(); ++handed) {
    trials_.at(handed->trial).again = handed->again;
    waiting_.push_front(handed->trial);
  }
}

std::int64_t SuggestSearch::room(const Asked& asked, std::int64_t wanted) const {
  return wanted - std::ssize(asked.trials);
}

// Returns the number of new trials that the budget still allows.
std::int64_t SuggestSearch::missing() const {
  const bool spent = problem_.max_cost && trials_.spent() >= *problem_.max_cost;
  return spent ? 0 : search::trials_missing(problem_, trials_.history());
}

Status SuggestSearch::hand_out_waiting(std::int64_t wanted, Asked& out) {
  while (room(out, wanted) > 0 && !waiting_.empty()) {
    const std::size_t trial = waiting_.front();
    SuggestTrial& entry = trials_.at(trial);
    if (entry.state == TrialState::kWaiting) {
      FETTLE_TRY(journal_->hand_out(static_cast<std::int64_t>(trial)));
      entry.state = TrialState::kRunning;
    }
    waiting_.pop_front();
    if (entry.state != TrialState::kRunning) continue;  // a tell ended it meanwhile
    const bool promoted =
        promotes_ && trials_.history().stages[trial].rung > trials_.history().stages[trial].bracket;
    out.trials.push_back({trial, promoted, entry.again});
    entry.again = false;
  }
  return success();
}

// Resumes paused trials, or begins trials that take their place.
Status SuggestSearch::continue_paused(std::int64_t wanted, Asked& out) {
  if (!promotes_) return success();
  while (room(out, wanted) > 0) {
    const bool last = no_more();  // then the best of a rung do not wait for others (promotion.h)
    const search::History& history = trials_.history();
    if (const auto promotion = search::next_promotion(problem_, history, last)) {
      FETTLE_TRY(promote(*promotion, out));
    } else if (auto replacement = search::next_replacement(problem_, history, last)) {
      // The member ends at its pause; another trial begins from a checkpoint of a better one.
      FETTLE_TRY(begin(std::move(replacement->parameters), replacement->stage, TrialState::kRunning,
                       /*prescribed=*/false));
      out.trials.push_back({trials_.size() - 1});
      FETTLE_TRY(journal_->replace(replacement->trial, trials_.next_index() - 1));
      trials_.end(static_cast<std::size_t>(replacement->trial));
    } else {
      return success();
    }
  }
  return success();
}

Status SuggestSearch::promote(const search::Promotion& promotion, Asked& out) {
  FETTLE_TRY(journal_->promote(promotion.trial, promotion.stage, trials_.highest_seq()));
  const auto trial = static_cast<std::size_t>(promotion.trial);
  trials_.resume(trial, promotion.stage);
  out.trials.push_back({trial, /*resumes=*/true});
  return success();
}

Status SuggestSearch::create(std::int64_t wanted, Asked& out) {
  const std::int64_t most = std::min(room(out, wanted), missing());
  search::Suggestion suggestion = sampler_->suggest(trials_.history(), most);
  exhausted_ = suggestion.exhausted;
  std::vector<search::Stage> stages(suggestion.points.size(), {.until_step = spec_.resource.max});
  if (promotes_) stages = search::first_stages(problem_, trials_.history(), stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    FETTLE_TRY(begin(std::move(suggestion.points[i]), stages[i], TrialState::kRunning,
                     /*prescribed=*/false));
    out.trials.push_back({trials_.size() - 1});
  }
  return success();
}

Status SuggestSearch::begin(Json parameters, const search::Stage& stage, TrialState state,
                            bool prescribed) {
  FETTLE_TRY(
      journal_->create({trials_.next_index(), parameters, stage, trials_.highest_seq(), prescribed,
                        /*waits=*/state == TrialState::kWaiting}));
  trials_.begin(std::move(parameters), stage, state);
  return success();
}

// Nothing runs, nothing is to be resumed, and no new trial will come.
Status SuggestSearch::finish_if_over() {
  if (trials_.any_active() || !no_more()) return success();
  const search::History& history = trials_.history();
  const bool resumes = promotes_ && (search::next_promotion(problem_, history, /*last=*/true) ||
                                     search::next_replacement(problem_, history, /*last=*/true));
  return resumes ? success() : journal_->finish(exhausted_);
}

Status SuggestSearch::tell(std::size_t trial, const ToldResult& result) {
  api::Fact fact = fact_of(spec_, result, /*completed=*/true);
  // In a population a null is a failure (suggest.h): another trial then takes the member's place.
  const bool replaces = promotes_ && api::traits(problem_.algorithm.name).population;
  const bool has_all =
      std::ranges::all_of(fact.values, [](const auto& v) { return v.has_value(); });
  if (!has_all && replaces) fact.kind = api::FactKind::kFailed;
  const std::size_t before = trials_.history().events.size();
  trials_.add_fact(trial, std::move(fact));
  return record(trial, result, before,
                {.state = TrialState::kEnded, .next_rung = trials_[trial].next_rung},
                /*told=*/true);
}

Result<std::string_view> SuggestSearch::report(std::size_t trial, const ToldResult& result) {
  const std::size_t before = trials_.history().events.size();
  const Verdict verdict = judge_report(trial, result);
  FETTLE_TRY(record(trial, result, before, verdict, /*told=*/false));
  return verdict.decision;
}

// Adds the facts that the report stands for. It counts for every rung that the trial has passed
// since its last one, as in `fettle run` the first point of a curve at or after a rung does.
SuggestSearch::Verdict SuggestSearch::judge_report(std::size_t trial, const ToldResult& result) {
  const std::int64_t step = result.report.step;
  const bool at_the_end = step >= spec_.resource.max;
  api::Fact fact = fact_of(spec_, result, at_the_end);
  fact.kind = api::FactKind::kRung;
  Verdict out;
  out.next_rung = trials_[trial].next_rung;
  while (out.next_rung < rungs_.size() && rungs_[out.next_rung] <= step) {
    fact.step = rungs_[out.next_rung++];
    trials_.add_fact(trial, fact);
    // At its end a trial is complete; if trials pause, next_promotion() judges the rungs.
    if (at_the_end || promotes_) continue;
    search::Judgement judgement = search::judge(
        problem_, *problem_.early_stopping, trials_.history(), static_cast<std::int64_t>(trial));
    if (judgement.verdict != search::Verdict::kStop) continue;
    fact.kind = api::FactKind::kStopped;
    trials_.add_fact(trial, fact);
    return {"stop", TrialState::kEnded, out.next_rung, std::move(judgement.reason)};
  }
  fact.step = step;
  // A trial that pauses leaves a Stopped fact, as under `fettle run`.
  fact.kind = at_the_end ? api::FactKind::kResult : api::FactKind::kStopped;
  // until_step: the step to which the last ask sent it.
  const bool pauses =
      promotes_ && !at_the_end && step >= trials_.history().stages[trial].until_step;
  if (at_the_end || pauses) trials_.add_fact(trial, std::move(fact));
  if (at_the_end) out.state = TrialState::kEnded;
  if (!pauses) return out;
  out.decision = "pause";
  out.state = TrialState::kPaused;
  return out;
}

// Writes down the facts from `facts_before` on, or takes them back.
Status SuggestSearch::record(std::size_t trial, const ToldResult& result, std::size_t facts_before,
                             const Verdict& verdict, bool told) {
  std::vector<api::Fact> facts;
  for (std::size_t i = facts_before; i < trials_.history().events.size(); ++i) {
    facts.push_back(trials_.history().events[i].fact);
  }
  Status written = journal_->record({static_cast<std::int64_t>(trial), result.report, facts,
                                     verdict.state, told, verdict.stop_reason});
  if (!written.ok()) {
    trials_.forget_facts(facts_before);
    return written;
  }
  SuggestTrial& entry = trials_.at(trial);
  entry.next_rung = verdict.next_rung;
  if (verdict.state == TrialState::kRunning) return success();
  if (!told && verdict.state == TrialState::kEnded) entry.last_report = facts.back().values;
  trials_.settle(trial, verdict.state);
  return finish_if_over();
}

Status SuggestSearch::add_first(const std::vector<Json>& points) {
  FETTLE_TRY(check_first_points(spec_.parameters, points));
  const std::int64_t room = missing();
  if (std::ssize(points) > room) {
    return invalid("first: there are " + std::to_string(points.size()) +
                   " points, but the budget of the study leaves room for " + std::to_string(room) +
                   " more trials");
  }
  for (const Json& point : points) {
    FETTLE_ASSIGN(Json filled, fill_point(spec_, point, trials_.next_index()));
    search::Stage stage{.until_step = spec_.resource.max};
    if (promotes_) stage = search::first_stages(problem_, trials_.history(), 1).front();
    FETTLE_TRY(begin(std::move(filled), stage, TrialState::kWaiting, /*prescribed=*/true));
    waiting_.push_back(trials_.size() - 1);
  }
  return success();
}

Status SuggestSearch::add_priors(std::vector<api::PriorObservation> priors) {
  FETTLE_TRY(check_count(problem_.priors.size() + priors.size()));
  if (priors.empty()) return success();
  search::Problem problem = problem_;
  problem.priors.insert(problem.priors.end(), priors.begin(), priors.end());
  FETTLE_ASSIGN(std::unique_ptr<search::Sampler> sampler, search::make_sampler(problem));
  FETTLE_TRY(journal_->add_priors(priors));
  problem_ = std::move(problem);
  sampler_ = std::move(sampler);
  return success();
}

}  // namespace fettle::cli
