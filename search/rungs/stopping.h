// Types and helpers shared by the early-stopping rules (early_stopping.cpp selects the rule). Pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search/maths/loss.h"
#include "search/search.h"

namespace fettle::search {

// One Rung fact to judge, with all that was known when it was learnt.
struct JudgedRung {
  const History& history;
  std::size_t event;  // its position in the history
  std::int64_t trial;
  std::int64_t step;
  double loss;
  double sign;           // -1 if the objective is maximised
  bool outside = false;  // of a constraint, as of then
};

// Calls visit(event, loss) for each value at a rung that is known by then, oldest first.
template <typename Visit>
void for_each_rung(const JudgedRung& judged, Visit visit) {
  for (std::size_t i = 0; i <= judged.event; ++i) {
    const Event& event = judged.history.events[i];
    if (event.fact.kind == api::FactKind::kRung) visit(event, loss_of(event.fact, judged.sign));
  }
}

// "asha: rung 1 (step 3): ", and the text of a value after it.
std::string opening(api::StoppingKind rule, const Judgement& judgement, const JudgedRung& judged);
std::string value_text(const JudgedRung& judged, double loss);

// One point of the learning curve of the judged trial or of another one.
struct CurvePoint {
  std::int64_t step = 0;
  double loss = 0;
};
// The points known of a trial at rungs, ascending, the newest value of each step.
std::vector<CurvePoint> curve_of(const JudgedRung& judged, std::int64_t trial);

// The smallest value such that `share` of all are at most it, between neighbours by linear
// interpolation. `values` is not empty.
double quantile(std::vector<double> values, double share);

// The rules. Each sets the reason, and may set the verdict.
void judge_asha(const JudgedRung& judged, double reduction_factor, Judgement& out);
void judge_median(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out);
void judge_percentile(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out);
void judge_patience(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out);
void judge_threshold(const JudgedRung& judged, const api::EarlyStopping& rules, Judgement& out);
// `last_step`: the step at which learning curves end.
void judge_curve(const JudgedRung& judged, const api::EarlyStopping& rules, std::int64_t last_step,
                 Judgement& out);

}  // namespace fettle::search
