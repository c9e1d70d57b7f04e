// RungTable: a history seen from the rungs of a Study whose trials pause (promotion.h).
//
// Losses are values of the first objective with the sign that makes less better; infinite if the
// value is not finite or the result is infeasible. Immutable; safe to share between threads.
//
// A trial is sent to one rung after the other, and each of these legs ends in one fact: Stopped
// where it pauses, however far it really came (a program may leave early, or report less often than
// there are rungs). So the numbers of legs begun and ended tell whether it is at work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"

namespace fettle::search {

class RungTable {
 public:
  // `steps`: the rungs' steps, ascending, the last one resource.max. `events`: the number of events
  // that count.
  RungTable(const Problem& problem, const History& history, std::vector<std::int64_t> steps);
  RungTable(const Problem& problem, const History& history, std::vector<std::int64_t> steps,
            std::size_t events);

  std::int64_t rungs() const { return static_cast<std::int64_t>(steps_.size()); }
  std::int64_t step(std::int64_t rung) const { return steps_[static_cast<std::size_t>(rung)]; }

  struct Entry {
    std::int64_t trial = 0;
    double loss = 0;
    bool outside = false;  // of a constraint, by the reports until then
  };
  // The trials with a value at this rung, best first: trials within all constraints before trials
  // outside, ties in the order of trials.
  const std::vector<Entry>& at(std::int64_t rung) const {
    return by_rung_[static_cast<std::size_t>(rung)];
  }
  std::optional<double> loss(std::int64_t trial, std::int64_t rung) const;

  // Whether the trial has come to the rung it was sent to and waits there.
  bool waits(std::int64_t trial, const Stage& stage) const;
  // Whether it is on its way to that rung.
  bool runs(std::int64_t trial, const Stage& stage) const;
  // Whether any trial is on its way; `stages` has one entry for each.
  bool any_runs(const std::vector<Stage>& stages) const;
  // Whether its way there ended without a value to compare: it stays without one.
  bool is_silent(std::int64_t trial, const Stage& stage) const;

  // The first rung at which a trial had a value after it was silent at the rungs below; 0 if none.
  // Programs may first report after the lowest rungs. The ends of legs show this; facts do not,
  // since the fact of a rung that was passed without a value carries the next value.
  std::int64_t first_rung() const { return first_rung_; }
  // Whether the trial rests without any value at a rung where no trial has ended a leg with one,
  // and could resume to a higher one.
  bool is_early(std::int64_t trial, const Stage& stage) const;
  // Whether the trial was sent on in silence, beyond the rungs at which others have reported, and
  // has not reported since, or has failed.
  bool is_probe(std::int64_t trial, const Stage& stage) const;

  // How well losses at `rung` predict losses at a higher one, in [0, 1]: the correlation of normal
  // scores, corrected for the selection of the pairs by the lower rung (Thorndike's case 2), shrunk
  // towards `prior` while pairs are few.
  double agreement(std::int64_t rung, std::int64_t higher, double prior) const;
  // How well losses at `rung` predict the end: the agreement with it, shrunk towards the product of
  // the agreements rung by rung on the way, which have more pairs. The product alone is not enough:
  // two rungs may agree on something that the third refutes. 1 at the last rung.
  double trust(std::int64_t rung) const;

 private:
  struct Row {
    std::vector<std::optional<double>> losses;  // by rung
    std::vector<bool> outside;                  // by rung: beyond a constraint so far
    std::int64_t bracket = 0;
    std::int64_t legs_ended = 0;
    std::int64_t silent_legs = 0;  // legs before its first value
    bool over = false;             // failed or with a result: no further fact counts
  };
  bool rests(std::int64_t trial, const Stage& stage) const;
  static bool has_value(const Row& row);
  const Row& of(std::int64_t trial) const { return rows_[static_cast<std::size_t>(trial)]; }
  void add(const Event& event, double sign);
  void end_leg(Row& row);

  std::vector<std::int64_t> steps_;
  std::vector<Row> rows_;  // by trial
  std::vector<std::vector<Entry>> by_rung_;
  std::int64_t first_rung_ = 0;
  std::int64_t
      lowest_reported_;  // the lowest rung at which a leg ended with a value; rungs(): none
};

// Whether two trials of a rung have equal entries.
bool are_tied(const RungTable::Entry& a, const RungTable::Entry& b);

// Normal scores of ascending values, by place: equal values share the mean of their places.
std::vector<double> normal_scores(const std::vector<RungTable::Entry>& entries);

// "1, 3, 9", for people.
std::string list_steps(const std::vector<std::int64_t>& steps);

}  // namespace fettle::search
