#include "cli/suggest/suggest.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "cli/common/exit_code.h"
#include "cli/suggest/suggest_study.h"
#include "search/rungs/population.h"
#include "search/rungs/promotion.h"
#include "search/search.h"

namespace fettle::cli {
namespace {

constexpr std::streamsize kMaxLineBytes = 16 << 20;
constexpr std::int64_t kMaxAsk = 1'000'000;  // one answer is one line: a client asks again for more

// The reply names the line of the input, so the line in the JSON text, always the first, is
// removed.
Result<Json> parse_line(std::string_view line) {
  auto message = parse_json(line, {.allow_non_finite = true});
  if (message.ok()) return message;
  constexpr std::string_view kInnerLine = "line 1, ";
  Error error = message.error();
  if (error.message.starts_with(kInnerLine)) error.message.erase(0, kInnerLine.size());
  return error;
}

// One study and its trials so far.
class Session {
 public:
  explicit Session(std::ostream& out) : out_(out) {}

  Status handle(std::string_view line) {
    FETTLE_ASSIGN(const Json message, parse_line(line));
    if (!message.is_object() || message.as_object().size() != 1) {
      return invalid("a line is an object with one member: study, ask, tell or report");
    }
    const auto& [verb, content] = message.as_object().front();
    if (verb == "study") return start(content);
    if (verb != "ask" && verb != "tell" && verb != "report") {
      return invalid("there is no request " + Json(verb).dump() +
                     "; expected study, ask, tell or report");
    }
    if (!sampler_)
      return invalid(verb + " before a study: the first line must be {\"study\": ...}");
    if (verb == "ask") return ask(content);
    return verb == "tell" ? tell(content) : report(content);
  }

 private:
  // State of a trial. A paused trial waits at its rung for an ask to resume it.
  enum class State { kRunning, kPaused, kEnded };

  Status start(const Json& content) {
    if (sampler_) return invalid("there is a study already; start another process for another one");
    FETTLE_ASSIGN(search::Problem problem, read_suggest_study(content));
    FETTLE_ASSIGN(sampler_, search::make_sampler(problem));
    problem_ = std::move(problem);
    promotes_ = search::promotes(problem_);
    rungs_ = search::rung_steps(problem_.algorithm, problem_.early_stopping, problem_.resource);
    return success();
  }

  Status ask(const Json& content) {
    if (!content.is_integer() || content.as_integer() < 1 || content.as_integer() > kMaxAsk) {
      return invalid("ask must be a whole number from 1 to " + std::to_string(kMaxAsk) +
                     "; found " + content.dump());
    }
    std::int64_t wanted = content.as_integer();
    std::string reply;
    wanted -= continue_paused(wanted, reply);
    wanted -= create(wanted, reply);
    // create() may have exhausted the space. Then no further results will come, and trials that
    // waited for them are promoted now.
    if (no_more()) wanted -= continue_paused(wanted, reply);
    // If trials pause, a running one may still lead to a promotion. Otherwise the trials that
    // create() did not return will never come.
    const bool over = wanted > 0 && !(promotes_ && search::any_runs(problem_, history_));
    out_ << "{\"trials\":[" << reply << (over ? "],\"exhausted\":true}\n" : "]}\n") << std::flush;
    return success();
  }

  // Whether no new trials will be created.
  bool no_more() const { return exhausted_ || missing() <= 0; }

  // Returns the number of new trials that the budget still allows.
  std::int64_t missing() const {
    const bool spent = problem_.max_cost && spent_ >= *problem_.max_cost;
    return spent ? 0 : search::trials_missing(problem_, history_);
  }

  // Resumes at most `most` paused trials, or begins trials that take their place. Returns their
  // number.
  std::int64_t continue_paused(std::int64_t most, std::string& reply) {
    if (!promotes_) return 0;
    for (std::int64_t done = 0; done < most; ++done) {
      const bool last = no_more();  // then the best of a rung do not wait for others (promotion.h)
      if (const auto promotion = search::next_promotion(problem_, history_, last)) {
        const auto trial = static_cast<std::size_t>(promotion->trial);
        history_.stages[trial] = promotion->stage;
        states_[trial] = State::kRunning;
        add_to(reply, "{\"id\":" + std::to_string(trial) + ",\"resume\":true}");
      } else if (auto replacement = search::next_replacement(problem_, history_, last)) {
        // The member ends at its pause; another trial begins from a checkpoint of a better one.
        const auto replaced = static_cast<std::size_t>(replacement->trial);
        states_[replaced] = State::kEnded;
        history_.stages[replaced].ended = true;
        begin(std::move(replacement->parameters), replacement->stage, reply);
      } else {
        return done;
      }
    }
    return most;
  }

  static void add_to(std::string& reply, const std::string& trial) {
    reply += reply.empty() ? "" : ",";
    reply += trial;
  }

  void begin(Json parameters, const search::Stage& stage, std::string& reply) {
    std::string parent;
    if (stage.parent) {
      parent = ",\"parent\":{\"id\":" + std::to_string(stage.parent->trial) +
               ",\"step\":" + std::to_string(stage.parent->step) + "}";
    }
    add_to(reply, "{\"id\":" + std::to_string(history_.trials.size()) +
                      ",\"params\":" + parameters.dump() + parent + "}");
    history_.trials.push_back(std::move(parameters));
    if (promotes_) history_.stages.push_back(stage);  // else empty: no trial pauses
    states_.push_back(State::kRunning);
    costs_.push_back(0);
    // With a parent it begins at `stage.rung`: values below it are the parent's, and known.
    next_rung_.push_back(stage.parent ? static_cast<std::size_t>(stage.rung) : 0);
  }

  // Begins at most `most` new trials. Returns their number.
  std::int64_t create(std::int64_t most, std::string& reply) {
    search::Suggestion suggestion = sampler_->suggest(history_, std::min(most, missing()));
    exhausted_ = suggestion.exhausted;
    std::vector<search::Stage> stages(suggestion.points.size());
    if (promotes_) stages = search::first_stages(problem_, history_, stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      begin(std::move(suggestion.points[i]), stages[i], reply);
    }
    return std::ssize(stages);
  }

  // Returns the trial that `content` names; it must not have ended.
  Result<std::size_t> trial_of(const Json& content, std::string_view verb) const {
    const Json* id = content.find("id");
    if (id == nullptr) return invalid(std::string(verb) + " needs the id of a trial");
    if (!id->is_integer() || id->as_integer() < 0 ||
        static_cast<std::size_t>(id->as_integer()) >= states_.size()) {
      return invalid("there is no trial " + id->dump() + "; " + std::to_string(states_.size()) +
                     " were asked for so far");
    }
    const auto trial = static_cast<std::size_t>(id->as_integer());
    if (states_[trial] == State::kEnded)
      return invalid("trial " + id->dump() + " has ended already");
    return trial;
  }

  // null, NaN and the infinities are no values: the trial is infeasible for that objective.
  static Result<std::optional<double>> read_value(const Json& json) {
    if (json.is_null()) return std::optional<double>();
    if (!json.is_number()) {
      return invalid("a value must be a number or null; found " + std::string(json.type_name()));
    }
    const double value = json.as_double();
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }

  // Absent or null: not known.
  static Result<std::optional<double>> read_cost(const Json& content) {
    const Json* json = content.find("cost");
    if (json == nullptr || json->is_null()) return std::optional<double>();
    const double cost = json->is_number() ? json->as_double() : -1;
    if (std::isfinite(cost) && cost >= 0) return std::optional(cost);
    const std::string found =  // JSON cannot express them
        std::isnan(cost) ? "NaN" : (std::isinf(cost) ? "Infinity" : json->dump());
    return invalid("cost must be a number of at least 0, in one unit for all trials; found " +
                   found);
  }

  // Reads a result at the last step; report() sets its own step and kind.
  Result<api::Fact> read_fact(const Json& content) const {
    const std::size_t objectives = problem_.objectives.size();
    const Json* one = content.find("value");
    const Json* several = content.find("values");
    if ((one != nullptr) == (several != nullptr)) {
      return invalid("give either value or, one an objective, values");
    }
    api::Fact fact;
    fact.step = problem_.resource.max;
    FETTLE_ASSIGN(fact.cost, read_cost(content));
    Json::Array list =
        several != nullptr && several->is_array() ? several->as_array() : Json::Array();
    if (one != nullptr) list = one->is_null() ? Json::Array(objectives) : Json::Array{*one};
    if (list.size() != objectives) {
      return invalid("there are " + std::to_string(objectives) +
                     " objectives, so values must be an array of as many; found " +
                     (several != nullptr ? several : one)->dump());
    }
    for (const Json& item : list) {
      FETTLE_ASSIGN(const std::optional<double> value, read_value(item));
      fact.values.push_back(value);
      fact.infeasible |= !value.has_value();
    }
    return fact;
  }

  void record(std::size_t trial, api::Fact fact) {
    fact.seq = std::ssize(history_.events) + 1;
    history_.events.push_back({static_cast<std::int64_t>(trial), fact});
    if (fact.kind == api::FactKind::kRung) return;
    states_[trial] = State::kEnded;
    if (!fact.cost) return;
    spent_ += *fact.cost - costs_[trial];
    costs_[trial] = *fact.cost;
  }

  Status tell(const Json& content) {
    FETTLE_ASSIGN(const std::size_t trial, trial_of(content, "tell"));
    FETTLE_ASSIGN(api::Fact fact, read_fact(content));
    // In a population a null is a failure (suggest.h): another trial then takes the member's place.
    const bool replaces = promotes_ && api::traits(problem_.algorithm.name).population;
    if (fact.infeasible && replaces) fact.kind = api::FactKind::kFailed;
    record(trial, std::move(fact));
    return success();
  }

  Status report(const Json& content) {
    FETTLE_ASSIGN(const std::size_t trial, trial_of(content, "report"));
    FETTLE_ASSIGN(api::Fact fact, read_fact(content));
    const Json* step = content.find("step");
    if (step == nullptr || !step->is_integer() || step->as_integer() < 0) {
      return invalid("report needs a step, a whole number of at least 0");
    }
    if (states_[trial] == State::kPaused) {
      return invalid("trial " + std::to_string(trial) + " is paused until an ask resumes it");
    }
    fact.step = step->as_integer();
    out_ << "{\"decision\":\"" << decide(trial, fact) << "\"}\n" << std::flush;
    return success();
  }

  // The report counts for every rung that the trial has passed since its last one, as in `fettle
  // run` the first point of a curve at or after a rung does.
  std::string_view decide(std::size_t trial, api::Fact fact) {
    const std::int64_t step = fact.step;  // below, fact.step is that of each rung in turn
    const bool at_the_end = step >= problem_.resource.max;
    std::size_t& next = next_rung_[trial];
    while (next < rungs_.size() && rungs_[next] <= step) {
      fact.kind = api::FactKind::kRung;
      fact.step = rungs_[next++];
      record(trial, fact);
      // At its end a trial is complete; if trials pause, next_promotion() judges the rungs.
      if (at_the_end || promotes_ || !is_to_stop(trial)) continue;
      fact.kind = api::FactKind::kStopped;
      record(trial, fact);
      return "stop";
    }
    fact.step = step;
    // A trial that pauses leaves a Stopped fact, as under `fettle run`.
    fact.kind = at_the_end ? api::FactKind::kResult : api::FactKind::kStopped;
    // until_step: the step to which the last ask sent it.
    const bool pauses = promotes_ && !at_the_end && step >= history_.stages[trial].until_step;
    if (at_the_end || pauses) record(trial, fact);
    if (pauses) states_[trial] = State::kPaused;
    return pauses ? "pause" : "continue";
  }

  bool is_to_stop(std::size_t trial) const {
    const search::Judgement judgement = search::judge(problem_, *problem_.early_stopping, history_,
                                                      static_cast<std::int64_t>(trial));
    return judgement.verdict == search::Verdict::kStop;
  }

  std::ostream& out_;
  search::Problem problem_;
  std::unique_ptr<search::Sampler> sampler_;  // null before the study
  bool promotes_ = false;
  std::vector<std::int64_t> rungs_;
  search::History history_;
  std::vector<State> states_;           // by trial
  std::vector<std::size_t> next_rung_;  // by trial: the first rung without a fact
  std::vector<double> costs_;           // by trial: its cost until its end or pause, if known
  double spent_ = 0;                    // their sum
  bool exhausted_ = false;              // the space had no point left
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

int run_suggest(std::istream& in, std::ostream& out) {
  Session session(out);
  // Not cleared: short lines touch only the part that they need.
  const auto buffer = std::make_unique_for_overwrite<char[]>(kMaxLineBytes + 1);
  for (std::int64_t number = 1; out; ++number) {
    in.getline(buffer.get(), kMaxLineBytes + 1);  // and a NUL
    const std::streamsize read = in.gcount();
    if (in.eof() && read == 0) return kExitSucceeded;
    if (in.bad()) {  // a directory, for example: no line will come
      std::cerr << "fettle: the input cannot be read\n";
      return kExitEnvironment;
    }
    Status status = success();
    if (in.fail() && !in.eof()) {
      in.clear();
      in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
      status = invalid("the line is longer than " + std::to_string(kMaxLineBytes) + " bytes");
    } else {
      const std::streamsize length = in.eof() ? read : read - 1;  // without the newline
      const std::string_view line(buffer.get(), static_cast<std::size_t>(length));
      if (!is_blank(line)) status = session.handle(line);
    }
    if (status.ok()) continue;
    Json reply = Json::object({{"error", status.error().message}, {"line", number}});
    out << reply.dump() << '\n' << std::flush;
  }
  return kExitEnvironment;
}

}  // namespace fettle::cli
