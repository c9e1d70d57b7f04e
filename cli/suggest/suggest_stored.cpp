#include "cli/suggest/suggest_stored.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/study_json.h"
#include "base/json.h"
#include "cli/common/asked.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/study/problem.h"
#include "core/study/search_period.h"
#include "search/auto.h"
#include "search/space/fingerprint.h"
#include "search/space/space.h"
#include "search/study_problem.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMostParallel = 1000;

Status check_storable(const api::Study& study) {
  const api::ReadStudy read = api::read_study(api::write_study(study));
  if (read.errors.empty()) return success();
  std::string text;
  for (const api::FieldError& error : read.errors) {
    text += (text.empty() ? "" : "; ") + error.path + ": " + error.message;
  }
  return invalid("study " + study.metadata.name + " cannot be stored: " + text);
}

// The search of all trials. It keeps what was settled about steps (search/study_problem.h).
Result<api::SearchPeriod> period_of(const SuggestStudy& asked, const search::Problem& settled) {
  api::SearchPeriod out;
  out.algorithm = to_string(settled.algorithm.name);
  const bool adds = settled.early_stopping && !asked.spec.early_stopping;
  if (adds) out.early_stopping = to_string(settled.early_stopping->name);
  out.steps = settled.fidelity;
  out.trials = asked.max_trials;
  out.parallelism = asked.parallel;
  out.max_cost = asked.max_cost;
  out.durable_checkpoints = true;
  out.revision = search::kNewestRevision;
  out.computed_by = search::fingerprint();
  if (settled.algorithm.name != api::AlgorithmKind::kAuto) return out;
  FETTLE_ASSIGN(const search::Space space, search::Space::make(settled.parameters));
  search::Choice choice = search::choose_algorithm(settled, space);
  out.algorithm = to_string(choice.algorithm);
  out.reason = std::move(choice.reason);
  return out;
}

// A field of the study line, as a stored Study has it.
struct LineField {
  const char* name;
  std::function<Json(const api::Study&)> read;
};

Json part_of_spec(const api::Study& study, const char* name) {
  const Json spec = api::write_study_spec(study.spec);
  const Json* const part = spec.find(name);
  return part == nullptr ? Json() : *part;
}

LineField spec_field(const char* name, const char* in_spec) {
  return {name, [in_spec](const api::Study& study) { return part_of_spec(study, in_spec); }};
}

std::vector<LineField> line_fields() {
  return {
      spec_field("space", "parameters"),
      spec_field("directions", "objectives"),
      spec_field("algorithm", "algorithm"),
      spec_field("resource", "resource"),
      spec_field("early_stopping", "earlyStopping"),
      spec_field("constraints", "constraints"),
      spec_field("first", "warmStart"),
  };
}

// The limits of a study line may change from one session to the next. A new limit begins a search
// period.
std::vector<LineField> limits() {
  return {
      {"max_trials", [](const api::Study& study) { return study.status.search.back().trials; }},
      {"parallel", [](const api::Study& study) { return study.status.search.back().parallelism; }},
      {"max_cost", [](const api::Study& study) { return study.status.search.back().max_cost; }},
  };
}

bool has_same_limits(const api::Study& stored, const api::Study& wanted) {
  return std::ranges::all_of(
      limits(), [&](const LineField& limit) { return limit.read(stored) == limit.read(wanted); });
}

// Lists the fields that differ: "max_trials was 5, now 6; ...".
std::string differences(const std::vector<LineField>& fields, const api::Study& stored,
                        const api::Study& wanted) {
  std::string out;
  for (const LineField& field : fields) {
    const Json before = field.read(stored);
    const Json now = field.read(wanted);
    if (before == now) continue;
    out += (out.empty() ? "" : "; ") + std::string(field.name) + " was " + before.dump() +
           ", now " + now.dump();
  }
  return out;
}

// The rules of the search as they follow from the new limits. What was settled about steps stays.
api::SearchPeriod period_with_limits(const api::Study& stored, const api::SearchPeriod& asked) {
  api::Study study = stored;
  study.spec.budget.trials = asked.trials;  // 0 = no limit, unlike in a stored budget
  study.spec.budget.parallelism = asked.parallelism;
  api::SearchPeriod out = search::settle(study);
  out.reason = core::truncate_message(out.reason);
  out.max_cost = asked.max_cost;
  out.durable_checkpoints = asked.durable_checkpoints;
  return out;
}

TrialState state_of(const api::Trial& trial, const api::StudySpec& spec) {
  if (trial.status.phase == api::TrialPhase::kPending) return TrialState::kWaiting;
  if (core::is_active(trial)) return TrialState::kRunning;
  const bool rests = trial.status.phase == api::TrialPhase::kCompleted && !trial.spec.stop &&
                     core::newest_fact(trial, api::FactKind::kResult) == nullptr;
  return rests && trial.spec.until_step < spec.resource.max ? TrialState::kPaused
                                                            : TrialState::kEnded;
}

// The results of the study line come first; others may have been added since.
bool begins_with(const std::vector<api::PriorObservation>& stored,
                 const std::vector<api::PriorObservation>& wanted) {
  return wanted.size() <= stored.size() && std::equal(wanted.begin(), wanted.end(), stored.begin());
}

}  // namespace

Result<api::Study> study_to_store(const SuggestStudy& asked, const search::Problem& settled,
                                  const std::string& name) {
  api::Study out;
  out.metadata.name = name;
  out.spec = asked.spec;
  out.spec.budget.trials = asked.max_trials == 0 ? api::kNoTrialLimit : asked.max_trials;
  out.spec.budget.parallelism = std::clamp<std::int64_t>(asked.parallel, 1, kMostParallel);
  out.spec.budget.failures = api::kNoTrialLimit;
  out.spec.trial.pod_template = template_of_asked();
  out.spec.trial.checkpoints.emplace();  // the client keeps them
  FETTLE_ASSIGN(api::SearchPeriod period, period_of(asked, settled));
  out.status.search.push_back(std::move(period));
  out.status.prior_observations = asked.priors;
  FETTLE_TRY(check_storable(out));
  return out;
}

search::Problem problem_of_stored(const api::Study& study) {
  search::Problem out = core::problem_of(study);
  out.max_cost = study.status.search.back().max_cost;
  return out;
}

Status check_same_study(const api::Study& stored, const api::Study& wanted) {
  const std::string& name = stored.metadata.name;
  if (!is_asked(stored.spec)) {
    return invalid("study " + name +
                   " runs a program: continue it with fettle run, or choose another name");
  }
  std::vector<LineField> fields = line_fields();
  // The members of a population are its max_trials, and they train together.
  if (api::traits(stored.spec.algorithm.name).population)
    std::ranges::copy(limits(), std::back_inserter(fields));
  std::string differing = differences(fields, stored, wanted);
  if (!begins_with(stored.status.prior_observations, wanted.status.prior_observations)) {
    differing += std::string(differing.empty() ? "" : "; ") + "known has other results";
  }
  if (differing.empty()) return success();
  return invalid("study " + name + " is stored with another study line: " + differing +
                 "; send the same line, or choose another name");
}

Result<std::optional<api::SearchPeriod>> next_period(const api::Study& stored,
                                                     const api::Study& wanted,
                                                     const SearchPosition& position) {
  const std::vector<api::SearchPeriod>& periods = stored.status.search;
  const api::SearchPeriod& asked = wanted.status.search.front();
  const std::optional<api::SearchPeriod> none;
  const bool same_limits = has_same_limits(stored, wanted);
  if (same_limits && periods.back().computed_by == asked.computed_by) return none;
  if (position.next == 0) return std::optional(asked);  // nothing was decided yet
  const std::size_t most = same_limits ? core::kMostForMachines : api::kMostSearchPeriods;
  const bool is_full = periods.size() >= most && periods.back().since != position.next;
  if (is_full && same_limits) return none;
  if (is_full) {
    return invalid(
        "study " + stored.metadata.name + " has had " + std::to_string(api::kMostSearchPeriods) +
        " changes of its limits, which is the most: " + differences(limits(), stored, wanted) +
        "; send the last line again, or choose another name");
  }
  api::SearchPeriod out = same_limits ? periods.back() : period_with_limits(stored, asked);
  out.computed_by = asked.computed_by;
  out.since = position.next;
  out.basis = position.basis;
  return std::optional(std::move(out));
}

SuggestTrials restore_trials(const api::Study& study, const std::vector<api::TrialPtr>& trials,
                             bool promotes) {
  SuggestTrials out(study.spec, promotes);
  std::vector<search::Event> events;
  for (const api::TrialPtr& trial : trials) {
    const search::Stage stage = core::stage_of(*trial, std::ssize(trials));
    search::Stage first = stage;
    first.rung = stage.bracket;
    out.begin(trial->spec.parameters, first, TrialState::kRunning);
    if (promotes) out.resume(out.size() - 1, stage);
    for (const api::Fact& fact : trial->status.facts) events.push_back({trial->spec.index, fact});
  }
  std::ranges::sort(events, {}, [](const search::Event& event) { return event.fact.seq; });
  for (search::Event& event : events) {
    const auto trial = static_cast<std::size_t>(event.trial);
    const bool is_rung = event.fact.kind == api::FactKind::kRung;
    out.add_fact(trial, std::move(event.fact));
    if (is_rung) {
      ++out.at(trial).next_rung;
    } else {
      out.settle(trial, TrialState::kEnded);
    }
  }
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const api::Trial& trial = *trials[i];
    out.set_state(i, state_of(trial, study.spec));
    const bool by_report = trial.status.report && !trial.status.report->final_result;
    const bool ended = out[i].state == TrialState::kEnded && !trial.status.facts.empty();
    const bool replaced = trial.spec.stop && trial.spec.stop->reason != core::kEarlyStopped;
    if (ended && by_report && !replaced) out.at(i).last_report = trial.status.facts.back().values;
  }
  return out;
}

}  // namespace fettle::cli
