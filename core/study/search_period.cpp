#include "core/study/search_period.h"

#include <cmath>
#include <optional>
#include <utility>

#include "api/trial/display.h"
#include "core/conditions.h"
#include "core/facts/run_records.h"
#include "core/study/spending.h"
#include "search/rungs/promotion.h"
#include "search/study_problem.h"

namespace fettle::core {

using api::SearchPeriod;

namespace {

std::optional<double> max_cost(const api::StudySpec& spec) {
  return spec.algorithm.cost_aware ? max_cost_of(spec) : std::nullopt;
}

bool rests_on_budget(const SearchPeriod& period, const api::StudySpec& spec) {
  return period.trials == spec.budget.trials && period.max_cost == max_cost(spec);
}

// Whether another period may be written: there is room, or it replaces an empty one.
bool has_room(const std::vector<SearchPeriod>& periods, std::int64_t next) {
  return periods.size() < api::kMostSearchPeriods || periods.back().since == next;
}

// The period from the next trial on. If only the machine has changed, the algorithm stays.
SearchPeriod period_from(const api::Study& study, const Ledger& ledger,
                         const std::string& computed_by, api::Place place) {
  const std::vector<SearchPeriod>& periods = study.status.search;
  const bool only_machine_changed = !periods.empty() &&
                                    rests_on_budget(periods.back(), study.spec) &&
                                    search::is_known(periods.back());
  SearchPeriod out = only_machine_changed ? periods.back() : search::settle(study, place);
  out.max_cost = max_cost(study.spec);
  // Trials that an earlier version created are assumed to have been chosen by the present rules.
  out.since = periods.empty() ? 0 : ledger.next_index();
  out.basis = periods.empty() ? 0 : ledger.highest_seq();
  if (periods.empty() && ledger.next_index() > 0) out.revision = search::kFirstRevision;
  out.computed_by = computed_by;
  out.reason = truncate_message(out.reason);
  out.steps = truncate_message(out.steps);
  return out;
}

// The extra cost of training the lower rungs again at each promotion: with a reduction factor of 3,
// a trial costs 1 + 1/3 + 1/9 ... times as much.
std::string price_of_promotions(const api::Study& study) {
  const std::optional<api::EarlyStopping>& rule = study.spec.early_stopping;
  const bool by_rule = rule && rule->promote;
  const double factor = by_rule ? rule->reduction_factor : study.spec.algorithm.reduction_factor;
  const double more = 100 / (factor - 1);
  return "with reductionFactor " + api::short_number(factor) + " about " +
         std::to_string(std::lround(more)) + " % more of a trial that goes to its end";
}

// Warns once, before the first trial. The results stay correct: trials only repeat earlier steps.
void warn_of_lost_checkpoints(const api::Study& study, StudyPlan& plan) {
  if (search::keeps_checkpoints(study.status) || !search::promotes(search::problem_of(study)))
    return;
  const std::string& algorithm = study.status.search.back().algorithm;
  plan.actions.emplace_back(
      Note{{EventType::kWarning, kNoDurableCheckpoints,
            "under " + algorithm +
                " trials pause and resume, but their checkpoints are deleted with "
                "their pods: each promotion trains again from the first step, " +
                price_of_promotions(study) + "; give spec.trial.checkpoints a claim or a size"}});
}

}  // namespace

bool needs_search_period(const api::Study& study, const Ledger& ledger,
                         const std::string& computed_by) {
  if (study.metadata.deleted_ms != 0 || study.spec.suspend) return false;
  const bool spec_is_new = study.status.observed_generation != study.metadata.generation;
  if (is_finished(study.status) && !spec_is_new) return false;
  const std::vector<SearchPeriod>& periods = study.status.search;
  if (periods.empty()) return true;
  if (!has_room(periods, ledger.next_index())) return false;
  const SearchPeriod& last = periods.back();
  if (!rests_on_budget(last, study.spec) || !search::is_known(last)) return true;
  // Only the machine has changed, which may use up half of the periods.
  return last.computed_by != computed_by && periods.size() < kMostForMachines;
}

StudyPlan plan_search_period(const api::Study& study, const Ledger& ledger,
                             const std::string& computed_by, api::Place place) {
  api::StudyStatus status = study.status;
  SearchPeriod next = period_from(study, ledger, computed_by, place);
  const bool begins = status.search.empty();
  const std::string before = begins ? "" : status.search.back().algorithm;
  const std::string words = "from trial " + std::to_string(next.since) + " on auto is " +
                            next.algorithm + ", no longer " + before + ", because " + next.reason;
  const bool differs = !begins && before != next.algorithm;
  // Nothing was decided in a period that begins where this one does.
  const bool replaces = !begins && status.search.back().since == next.since;
  if (replaces) status.search.pop_back();
  status.search.push_back(std::move(next));
  StudyPlan plan;
  api::Study begun = study;
  begun.status = status;  // warn_of_lost_checkpoints() reads the new period
  plan.actions.emplace_back(UpdateStudyStatus{std::move(status)});
  if (begins) warn_of_lost_checkpoints(begun, plan);
  if (differs) plan.actions.emplace_back(Note{{EventType::kNormal, "SearchChanged", words}});
  return plan;
}

}  // namespace fettle::core
