#include "cli/suggest/suggest_session.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/fields/field.h"
#include "api/study/algorithm.h"
#include "cli/suggest/suggest_result.h"
#include "cli/suggest/suggest_store.h"
#include "cli/suggest/suggest_stored.h"
#include "cli/suggest/suggest_study.h"
#include "search/rungs/promotion.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kNewestProtocol = 2;
constexpr std::int64_t kMaxAsk = 1'000'000;  // one answer is one line: a client asks again for more

std::string done(bool ack) { return ack ? "\"ok\":true" : ""; }

Result<std::string> hello(const Json& content) {
  if (!content.is_integer() || content.as_integer() < 1) {
    return invalid(
        "hello must be the highest protocol that the client knows, a whole number of at "
        "least 1; found " +
        api::describe(content));
  }
  const std::int64_t protocol = std::min(content.as_integer(), kNewestProtocol);
  std::vector<Json> algorithms;
  for (const auto& entry : names_of(api::AlgorithmKind::kAuto)) algorithms.emplace_back(entry.name);
  const Json reply = Json::object({{"protocol", protocol},
                                   {"version", FETTLE_VERSION},
                                   {"algorithms", Json(std::move(algorithms))}});
  return "\"hello\":" + reply.dump();
}

// Returns the trial that `content` names.
Result<std::size_t> trial_of(const SuggestTrials& trials, const Json& content,
                             std::string_view verb) {
  const Json* id = content.find("id");
  if (id == nullptr) return invalid(std::string(verb) + " needs the id of a trial");
  if (!id->is_integer() || id->as_integer() < 0 ||
      static_cast<std::size_t>(id->as_integer()) >= trials.size()) {
    return invalid("there is no trial " + id->dump() + "; " + std::to_string(trials.size()) +
                   " were asked for so far");
  }
  const auto trial = static_cast<std::size_t>(id->as_integer());
  if (trials[trial].state != TrialState::kWaiting) return trial;
  return invalid("trial " + id->dump() + " was not handed out yet");
}

Error has_ended(std::size_t trial) {
  return invalid("trial " + std::to_string(trial) + " has ended already");
}

// Whether `content` says nothing else than the report that ended the trial.
bool repeats_last_report(const api::StudySpec& spec, const SuggestTrial& trial,
                         const Json& content) {
  if (!trial.last_report) return false;
  if (!has_value(content)) return true;
  const auto result = read_result(spec, content);
  return result.ok() && fact_of(spec, *result, /*completed=*/false).values == *trial.last_report;
}

void add_trial(const SuggestTrials& trials, const HandedTrial& handed, std::string& out) {
  const std::string id = std::to_string(handed.trial);
  out += (out.empty() ? "{\"id\":" : ",{\"id\":") + id;
  if (!handed.is_known) out += ",\"params\":" + trials.history().trials[handed.trial].dump();
  if (handed.resumes) out += ",\"resume\":true";
  const auto& stages = trials.history().stages;
  if (!handed.is_known && !stages.empty() && stages[handed.trial].parent) {
    const search::Origin& parent = *stages[handed.trial].parent;
    out += ",\"parent\":{\"id\":" + std::to_string(parent.trial) +
           ",\"step\":" + std::to_string(parent.step) + "}";
  }
  out += handed.again ? ",\"again\":true}" : "}";
}

Result<std::unique_ptr<SuggestSearch>> open_unstored(const SuggestStudy& study) {
  FETTLE_ASSIGN(search::Problem problem, problem_of(study));
  const bool promotes = search::promotes(problem);
  return SuggestSearch::make(study.spec, std::move(problem), SuggestTrials(study.spec, promotes),
                             std::make_unique<SuggestJournal>());
}

Result<std::unique_ptr<SuggestSearch>> open_stored(const SuggestStudy& study,
                                                   const SuggestPlace& place) {
  FETTLE_ASSIGN(const search::Problem settled, problem_of(study));
  FETTLE_TRY(search::make_sampler(settled));  // before anything is stored
  FETTLE_ASSIGN(const api::Study wanted, study_to_store(study, settled, place.study));
  FETTLE_ASSIGN(std::unique_ptr<SuggestStore> store, SuggestStore::open(place));
  FETTLE_TRY(store->begin(wanted));
  const api::StudySpec spec = store->study().spec;
  search::Problem problem = problem_of_stored(store->study());
  SuggestTrials trials = restore_trials(store->study(), store->trials(), search::promotes(problem));
  return SuggestSearch::make(spec, std::move(problem), std::move(trials), std::move(store));
}

Json values_json(const std::vector<std::optional<double>>& values) {
  return Json::array_of(values);
}

}  // namespace

Result<std::string> SuggestSession::handle(const SuggestLine& line) {
  const std::string& verb = line.verb;
  if (verb == "hello") return hello(line.content);
  if (verb == "study") return start(line.content, line.ack);
  if (!search_) {
    return invalid(verb + " before a study: the first line must be {\"study\": ...}");
  }
  if (verb == "ask") return ask(line.content);
  if (verb == "tell") return tell(line.content, line.ack);
  if (verb == "report") return report(line.content);
  if (verb == "best") return best(line.content);
  if (verb == "first") return add_first(line.content, line.ack);
  return add_known(line.content, line.ack);
}

Result<std::string> SuggestSession::start(const Json& content, bool ack) {
  if (search_) return invalid("there is a study already; start another process for another one");
  FETTLE_ASSIGN(const SuggestStudy study, read_suggest_spec(content));
  FETTLE_ASSIGN(search_, place_ ? open_stored(study, *place_) : open_unstored(study));
  if (!ack) return done(ack);
  return done(ack) + ",\"trials\":" + std::to_string(search_->trials().size());
}

Result<std::string> SuggestSession::ask(const Json& content) {
  if (!content.is_integer() || content.as_integer() < 1 || content.as_integer() > kMaxAsk) {
    return invalid("ask must be a whole number from 1 to " + std::to_string(kMaxAsk) + "; found " +
                   content.dump());
  }
  FETTLE_ASSIGN(const Asked asked, search_->ask(content.as_integer()));
  std::string trials;
  for (const HandedTrial& handed : asked.trials) add_trial(search_->trials(), handed, trials);
  return "\"trials\":[" + trials + (asked.is_over ? "],\"exhausted\":true" : "]");
}

Result<std::string> SuggestSession::tell(const Json& content, bool ack) {
  FETTLE_ASSIGN(const std::size_t trial, trial_of(search_->trials(), content, "tell"));
  const SuggestTrial& entry = search_->trials()[trial];
  if (entry.state == TrialState::kEnded) {
    if (!repeats_last_report(search_->spec(), entry, content)) return has_ended(trial);
    return done(ack);
  }
  FETTLE_ASSIGN(const ToldResult result, read_result(search_->spec(), content));
  FETTLE_TRY(check_constrained(search_->spec(), result, "tell"));
  FETTLE_TRY(search_->tell(trial, result));
  return done(ack);
}

Result<std::string> SuggestSession::report(const Json& content) {
  FETTLE_ASSIGN(const std::size_t trial, trial_of(search_->trials(), content, "report"));
  const SuggestTrial& entry = search_->trials()[trial];
  if (entry.state == TrialState::kEnded) return has_ended(trial);
  FETTLE_ASSIGN(ToldResult result, read_result(search_->spec(), content));
  const Json* step = content.find("step");
  if (step == nullptr || !step->is_integer() || step->as_integer() < 0) {
    return invalid("report needs a step, a whole number of at least 0");
  }
  if (entry.state == TrialState::kPaused) {
    return invalid("trial " + std::to_string(trial) + " is paused until an ask resumes it");
  }
  result.report.step = step->as_integer();
  if (result.report.step >= search_->spec().resource.max) {
    FETTLE_TRY(check_constrained(search_->spec(), result, "the last report"));
  }
  FETTLE_ASSIGN(const std::string_view decision, search_->report(trial, result));
  return "\"decision\":\"" + std::string(decision) + "\"";
}

Result<std::string> SuggestSession::best(const Json& content) const {
  if (!content.is_boolean() || !content.as_boolean()) {
    return invalid("best must be true; found " + api::describe(content));
  }
  const bool is_front = search_->spec().objectives.size() > 1;
  const SuggestTrials& trials = search_->trials();
  Json::Array entries;
  for (const std::size_t trial : trials.best()) {
    Json entry = Json::object(
        {{"id", static_cast<std::int64_t>(trial)}, {"params", trials.history().trials[trial]}});
    const auto& values = trials[trial].values;
    entry.set(is_front ? "values" : "value", is_front ? values_json(values) : Json(values[0]));
    entries.push_back(std::move(entry));
  }
  if (is_front) return "\"front\":" + Json(std::move(entries)).dump();
  return "\"best\":" + (entries.empty() ? std::string("null") : entries.front().dump());
}

Result<std::string> SuggestSession::add_first(const Json& content, bool ack) {
  if (!content.is_array()) {
    return invalid("first must be a list of points; found " + api::describe(content));
  }
  FETTLE_TRY(search_->add_first(content.as_array()));
  return done(ack);
}

Result<std::string> SuggestSession::add_known(const Json& content, bool ack) {
  FETTLE_ASSIGN(std::vector<api::PriorObservation> priors, read_known(search_->spec(), content));
  FETTLE_TRY(search_->add_priors(std::move(priors)));
  return done(ack);
}

}  // namespace fettle::cli
