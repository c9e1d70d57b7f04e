#include "search/rungs/rung_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "search/maths/fit_schedule.h"
#include "search/maths/normal.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/rungs/twins.h"
#include "search/samplers/samplers.h"
#include "search/space/space.h"

namespace fettle::search {
namespace {

// Returns, ascending, the numbers of events after which each trial first had a place from rung
// `first` on.
std::vector<std::size_t> times_of_places(const Problem& problem, const History& history,
                                         std::int64_t first) {
  const std::vector<std::int64_t> steps = ladder_of(problem);
  std::vector<bool> known(history.trials.size());
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < history.events.size(); ++i) {
    const api::Fact& fact = history.events[i].fact;
    // A failure counts, too: the trial gets the score infinity (mark_infeasible()).
    const bool places = fact.kind == api::FactKind::kFailed ||
                        fact.kind == api::FactKind::kResult ||
                        (fact.kind == api::FactKind::kRung &&
                         std::find(steps.begin() + first, steps.end(), fact.step) != steps.end());
    const auto trial = static_cast<std::size_t>(history.events[i].trial);
    if (!places || known[trial]) continue;
    known[trial] = true;
    out.push_back(i + 1);
  }
  return out;
}

// If this number of trials are equally the best of a model, nothing better is expected near them.
constexpr std::int64_t kUsedUp = 3;

// The history as seen by the model of one bracket.
class View {
 public:
  View(const Problem& problem, const History& history, std::int64_t bracket) : bracket_(bracket) {
    const std::vector<double> scores = scores_from_rung(problem, history, bracket);
    for (std::size_t trial = 0; trial < history.trials.size(); ++trial) {
      const bool known = !std::isnan(scores[trial]);
      // A trial with a score has come to the rungs of this bracket, wherever it began.
      add(history.trials[trial], known ? bracket_ : begun_at(history, trial));
    }
    if (problem.revision >= 2) tell_as_of_fits(problem, history);
    tell(scores, problem.resource.max);
  }

  // Adds a trial without a value, which began at rung `began`. A trial that will not come to the
  // rungs of this bracket is passed over (History): its place is neither known nor about to be.
  void add(const Json& point, std::int64_t began) {
    history_.trials.push_back(began >= bracket_ ? point : Json::object());
  }
  const History& history() const { return history_; }

 private:
  static std::int64_t begun_at(const History& history, std::size_t trial) {
    return history.stages.empty() ? 0 : history.stages[trial].bracket;
  }
  // Adds the places as they were when hyperparameters were last fitted, and when the anchor of that
  // fit was set. The sampler keeps the results of that time (../gp/targets.h), so a fit stays the
  // same until the next one is due.
  void tell_as_of_fits(const Problem& problem, const History& history) {
    const std::vector<std::size_t> times = times_of_places(problem, history, bracket_);
    const auto count = static_cast<std::int64_t>(times.size());
    const std::set<std::int64_t> lengths = {last_anchor(count), last_fit(count)};
    for (const std::int64_t length : lengths) {
      if (length < 1) continue;
      const std::size_t events = times[static_cast<std::size_t>(length) - 1];
      tell(scores_from_rung(problem, history, bracket_, events), problem.resource.max);
    }
  }

  // Adds the score of each trial that has one: first updates of known trials, then new trials.
  void tell(const std::vector<double>& scores, std::int64_t step) {
    told_.resize(scores.size());
    // Only new trials raise the number of ended trials, at which gp fits: when a fit falls due, the
    // places of all trials told before are already up to date.
    for (const bool again : {true, false}) {
      for (std::size_t trial = 0; trial < scores.size(); ++trial) {
        if (told_[trial] != again || std::isnan(scores[trial])) continue;
        tell(static_cast<std::int64_t>(trial), scores[trial], step);
      }
    }
    for (std::size_t trial = 0; trial < scores.size(); ++trial) {
      if (!std::isnan(scores[trial])) told_[trial] = true;
    }
  }
  void tell(std::int64_t trial, double score, std::int64_t step) {
    Event event;
    event.trial = trial;
    event.fact.seq = static_cast<std::int64_t>(history_.events.size()) + 1;
    event.fact.kind = api::FactKind::kResult;
    event.fact.step = step;
    event.fact.infeasible = std::isinf(score);
    event.fact.values = {std::isinf(score) ? std::nullopt : std::optional(score)};
    history_.events.push_back(std::move(event));
  }

  const std::int64_t bracket_;
  History history_;         // one number for each trial, told as a result
  std::vector<bool> told_;  // by trial: whether an event gives its place
};

// Returns "among the best 12 % (5 to 24 %)" for a predicted normal score, with one deviation to
// either side.
std::string place_text(const Explanation& predicted) {
  const auto percent = [](double score) {
    return std::to_string(std::clamp(std::llround(100 * normal_cdf(score)), 1LL, 100LL));
  };
  std::string out = "among the best " + percent(*predicted.mean);
  if (!predicted.deviation) return out + " %";
  return out + " % (" + percent(*predicted.mean - *predicted.deviation) + " to " +
         percent(*predicted.mean + *predicted.deviation) + " %)";
}

// The models of the brackets during one call. They are made anew each time, since one more value
// may change all places.
class Models {
 public:
  Models(const Problem& problem, const Problem& places, const ModelFactory& factory,
         const History& history)
      : problem_(problem), places_(places), factory_(factory), history_(history) {
    for (const Json& point : history.trials) tried_.insert(point.dump());
  }

  // Returns the point of one more trial, which will begin in `bracket`; nullopt if no point is
  // left.
  std::optional<Json> next(std::int64_t bracket) {
    std::optional<Json> point = is_used_up(bracket) ? draw() : ask(bracket);
    // Only the lowest bracket's model knows of every trial.
    if (!point || tried_.count(point->dump()) > 0) point = ask(0);
    if (!point) return std::nullopt;
    for (auto& [of, model] : models_) model.view.add(*point, bracket);
    tried_.insert(point->dump());
    added_.emplace_back(*point, bracket);
    return point;
  }

 private:
  struct Model {
    View view;
    std::unique_ptr<Sampler> sampler;
  };

  // Whether a model of this bracket can learn nothing more: its best trials are one curve, found
  // again and again, which it would propose once more. Ties are judged by the lowest rung, which
  // has the most trials.
  bool is_used_up(std::int64_t bracket) const {
    if (problem_.revision < 2) return false;
    const std::vector<double> scores = scores_from_rung(problem_, history_, bracket);
    double best = std::numeric_limits<double>::infinity();
    for (const double score : scores) best = std::isnan(score) ? best : std::min(best, score);
    return std::count(scores.begin(), scores.end(), best) >= kUsedUp &&
           ties_repeat({problem_, history_, ladder_of(problem_)}, /*rung=*/0);
  }

  // Draws from the prior, by the trial's number.
  std::optional<Json> draw() const {
    History points;
    points.trials = history_.trials;
    for (const auto& [point, began] : added_) points.trials.push_back(point);
    auto space = Space::make(problem_.parameters);  // which the factory has checked
    const auto random = make_random(std::move(space).value(), problem_.algorithm.seed);
    Suggestion one = random->suggest(points, 1);
    if (one.points.empty()) return std::nullopt;
    return std::move(one.points.front());
  }

  std::optional<Json> ask(std::int64_t bracket) {
    auto found = models_.find(bracket);
    if (found == models_.end()) {
      // make_rung_model() has tried the factory on this problem, so it succeeds.
      Model model{View(problem_, history_, bracket), factory_(places_).value()};
      for (const auto& [point, began] : added_) model.view.add(point, began);
      found = models_.emplace(bracket, std::move(model)).first;
    }
    Suggestion one = found->second.sampler->suggest(found->second.view.history(), 1);
    if (one.points.empty()) return std::nullopt;
    return std::move(one.points.front());
  }

  const Problem& problem_;
  const Problem& places_;
  const ModelFactory& factory_;
  const History& history_;
  std::map<std::int64_t, Model> models_;  // by bracket
  std::unordered_set<std::string> tried_;
  std::vector<std::pair<Json, std::int64_t>> added_;  // in this call, with their brackets
};

class RungModel final : public Sampler {
 public:
  RungModel(Problem problem, Problem places, ModelFactory factory, std::string name)
      : problem_(std::move(problem)),
        places_(std::move(places)),
        factory_(std::move(factory)),
        name_(std::move(name)) {}

  Suggestion suggest(const History& history, std::int64_t n) override {
    Models models(problem_, places_, factory_, history);
    Suggestion out;
    for (const std::int64_t bracket : brackets_of(history, static_cast<std::size_t>(n))) {
      std::optional<Json> point = models.next(bracket);
      if (!point) {
        // next() has asked the lowest bracket's model as well, which knows of every trial.
        out.exhausted = true;
        break;
      }
      out.points.push_back(std::move(*point));
    }
    return out;
  }
  // Explains the point by the model of the next trial's bracket. The model predicts places, and the
  // text says so: losses at its rungs do not compare.
  std::optional<Explanation> explain(const History& history, const Json& point) override {
    const std::int64_t bracket = brackets_of(history, 1).front();
    const View view(problem_, history, bracket);
    // make_rung_model() has tried the factory on this problem, so it succeeds.
    std::optional<Explanation> out = factory_(places_).value()->explain(view.history(), point);
    if (!out) return std::nullopt;
    // A bracket is named by the rung at which it begins (Stage::bracket).
    const std::int64_t step = ladder_of(problem_)[static_cast<std::size_t>(bracket)];
    const std::string at = problem_.resource.unit + " " + std::to_string(step);
    if (out->mean) {
      out->words = "expected " + place_text(*out) + " of the trials known at " + at +
                   ", where it is compared first; " + out->words;
    } else {
      out->words = "to be compared first at " + at + "; " + out->words;
    }
    out->mean.reset();
    out->deviation.reset();
    return out;
  }
  std::string description() const override {
    return name_of(problem_.algorithm.name) + " (rungs at " + list_steps(ladder_of(problem_)) +
           ", ranks within them as the objective of " + name_ + ")";
  }

 private:
  // Returns the brackets in which the next trials will begin.
  std::vector<std::int64_t> brackets_of(const History& history, std::size_t n) const {
    std::vector<std::int64_t> out(n, 0);
    if (!promotes(problem_)) return out;
    const std::vector<Stage> stages = first_stages(problem_, history, n);
    for (std::size_t i = 0; i < n; ++i) out[i] = stages[i].bracket;
    return out;
  }

  const Problem problem_;
  const Problem places_;  // the problem as the models see it
  const ModelFactory factory_;
  const std::string name_;
};

// Sets the score to infinity, which is no place, for a trial that failed or has a value that is not
// finite at a rung from `first` on. An infeasible result is such a value at the last rung
// (rung_table.h). `events`: the number of events that count.
void mark_infeasible(const RungTable& table, const History& history, std::int64_t first,
                     std::size_t events, std::vector<double>& scores) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (std::int64_t rung = first; rung < table.rungs(); ++rung) {
    for (const RungTable::Entry& entry : table.at(rung)) {
      if (std::isinf(entry.loss)) scores[static_cast<std::size_t>(entry.trial)] = kNone;
    }
  }
  for (std::size_t i = 0; i < events; ++i) {
    const Event& event = history.events[i];
    if (event.fact.kind != api::FactKind::kFailed) continue;
    scores[static_cast<std::size_t>(event.trial)] = kNone;
  }
}

// Gives trials that are equal at a rung the mean of their scores, so that the model sees no slope
// between them.
void level_ties(const std::vector<RungTable::Entry>& entries, std::vector<double>& scores) {
  for (std::size_t from = 0; from < entries.size();) {
    std::size_t to = from;
    double sum = 0;
    while (to < entries.size() && are_tied(entries[from], entries[to])) {
      sum += scores[static_cast<std::size_t>(entries[to++].trial)];
    }
    for (std::size_t i = from; i < to; ++i) {
      scores[static_cast<std::size_t>(entries[i].trial)] = sum / static_cast<double>(to - from);
    }
    from = to;
  }
}

// Ranks the trials of one rung, best first in `entries`, among each other, and leaves all others in
// place. Invariant: the trials of the rung together hold the same scores as before, so each keeps
// its rank relative to the trials it met on lower rungs; only their assignment changes. With
// `keep_ties`, equal trials share the mean of their scores.
void merge_ranks(const std::vector<RungTable::Entry>& entries, bool keep_ties,
                 std::vector<double>& scores) {
  const std::vector<double> fresh = normal_scores(entries);
  // A trial that began at this rung adds its own score: the score of its rank here.
  std::vector<double> held;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double score = scores[static_cast<std::size_t>(entries[i].trial)];
    held.push_back(std::isnan(score) ? fresh[i] : score);
  }
  // The best trial at this rung gets the best of these scores, the next one the next best.
  std::sort(held.begin(), held.end());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    scores[static_cast<std::size_t>(entries[i].trial)] = held[i];
  }
  if (keep_ties) level_ties(entries, scores);
}

}  // namespace

std::vector<double> scores_from_rung(const Problem& problem, const History& history,
                                     std::int64_t first) {
  return scores_from_rung(problem, history, first, history.events.size());
}

std::vector<double> scores_from_rung(const Problem& problem, const History& history,
                                     std::int64_t first, std::size_t events) {
  const RungTable table(problem, history, ladder_of(problem), events);
  std::vector<double> scores(history.trials.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t rung = first; rung < table.rungs(); ++rung) {
    // Revision 1 ranked tied trials by their number (docs/decisions/0066).
    merge_ranks(table.at(rung), problem.revision >= 2, scores);
  }
  mark_infeasible(table, history, first, events, scores);
  return scores;
}

Result<std::unique_ptr<Sampler>> make_rung_model(const Problem& problem, ModelFactory factory) {
  Problem ranked = problem;
  ranked.objectives.assign(1, api::Objective());
  ranked.objectives[0].metric = "place";
  ranked.early_stopping.reset();  // each trial has one place, a result: no rungs to judge
  // RungModel relies on this check: it calls the factory again and takes its success for granted.
  FETTLE_ASSIGN(const std::unique_ptr<Sampler> model, factory(ranked));
  return std::unique_ptr<Sampler>(std::make_unique<RungModel>(
      problem, std::move(ranked), std::move(factory), model->description()));
}

}  // namespace fettle::search
