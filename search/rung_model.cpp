#include "search/rung_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "search/rung_table.h"
#include "search/schedule.h"

namespace fettle::search {
namespace {

// Below this a rung says too little of the next one to rank by it, if there is more to go by.
constexpr double kLeastTrust = 0.35;

// The rung that all others build on: the lowest that is trusted, as long as the next one has enough
// values for a model of their own.
std::int64_t first_rung(const RungTable& table, std::size_t parameters) {
  std::int64_t rung = 0;
  while (rung + 1 < table.rungs() && table.trust(rung) < kLeastTrust &&
         table.at(rung + 1).size() >= parameters + 2) {
    ++rung;
  }
  return rung;
}

class RungModel final : public Sampler {
 public:
  RungModel(Problem problem, Problem base, ModelFactory factory, std::string name)
      : problem_(std::move(problem)),
        base_(std::move(base)),
        factory_(std::move(factory)),
        name_(std::move(name)) {}

  // A new model each time: one more value may change the places of all.
  Suggestion suggest(const History& history, std::int64_t n) override {
    return factory_(base_).value()->suggest(ranked(history), n);
  }
  std::string description() const override {
    return problem_.algorithm.name + " (rungs at " + list_steps(ladder_of(problem_)) +
           ", ranks within them as the objective of " + name_ + ")";
  }

 private:
  History ranked(const History& history) const {
    History out;
    out.trials = history.trials;
    const std::vector<double> scores = scores_across_rungs(problem_, history);
    for (std::size_t trial = 0; trial < scores.size(); ++trial) {
      if (std::isnan(scores[trial])) continue;
      Event event;
      event.trial = static_cast<std::int64_t>(trial);
      event.fact.seq = static_cast<std::int64_t>(out.events.size()) + 1;
      event.fact.kind = api::FactKind::kResult;
      event.fact.step = problem_.resource.max;
      event.fact.infeasible = std::isinf(scores[trial]);
      event.fact.values = {std::isinf(scores[trial]) ? std::nullopt : std::optional(scores[trial])};
      out.events.push_back(std::move(event));
    }
    return out;
  }

  const Problem problem_;
  const Problem base_;
  const ModelFactory factory_;
  const std::string name_;
};

}  // namespace

std::vector<double> scores_across_rungs(const Problem& problem, const History& history) {
  const RungTable table(problem, history, ladder_of(problem));
  std::vector<double> scores(history.trials.size(), std::numeric_limits<double>::quiet_NaN());
  const std::int64_t first = first_rung(table, problem.parameters.size());
  for (std::int64_t rung = first; rung < table.rungs(); ++rung) {
    const std::vector<RungTable::Entry>& entries = table.at(rung);
    const std::vector<double> fresh = normal_scores(entries);
    std::vector<double> places;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double held = scores[static_cast<std::size_t>(entries[i].trial)];
      places.push_back(std::isnan(held) ? fresh[i] : held);
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      scores[static_cast<std::size_t>(entries[i].trial)] = places[i];
    }
  }
  // What is infeasible where it was looked at last has no place.
  for (std::int64_t rung = 0; rung < table.rungs(); ++rung) {
    for (const auto& [trial, loss] : table.at(rung)) {
      if (std::isinf(loss)) {
        scores[static_cast<std::size_t>(trial)] = std::numeric_limits<double>::infinity();
      }
    }
  }
  for (const Event& event : history.events) {
    if (event.fact.kind != api::FactKind::kFailed) continue;
    scores[static_cast<std::size_t>(event.trial)] = std::numeric_limits<double>::infinity();
  }
  return scores;
}

Result<std::unique_ptr<Sampler>> make_rung_model(const Problem& problem, ModelFactory factory) {
  Problem ranked = problem;
  ranked.objectives.assign(1, api::Objective());
  ranked.objectives[0].metric = "place";
  ranked.early_stopping.reset();
  FETTLE_ASSIGN(const std::unique_ptr<Sampler> model, factory(ranked));
  return std::unique_ptr<Sampler>(std::make_unique<RungModel>(
      problem, std::move(ranked), std::move(factory), model->description()));
}

}  // namespace fettle::search
