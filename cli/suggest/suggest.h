// `fettle suggest`: the search as a service for any program, one JSON object a line.
//
//   -> {"study": {"name", "direction": "minimize"|"maximize", "directions": [...], "seed",
//                 "max_trials", "max_cost", "algorithm": {"name", "cost_aware", ...},
//                 "space": [PARAM, ...], "resource": {"min", "max"},
//                 "early_stopping": {"name", ...}}}          no reply
//      PARAM = {"name", "type": "float"|"int", "low", "high", "log", "step"}
//            | {"name", "type": "categorical", "choices": [...]} | {"name", "type": "bool"}
//              each optionally with "when": {"param": an earlier one, "in": [...]}
//   -> {"ask": n}      <- {"trials": [{"id", "params"} | {"id", "resume": true}, ...]}: new trials,
//                         and paused trials that resume from their checkpoints; n in all, or fewer
//                         while others still run, or fewer and "exhausted": true if the space or
//                         max_trials is used up and no paused trial is worth resuming
//                         A trial with "parent": {"id", "step"} starts from the checkpoint that the
//                         parent made at that step (populations: pbt, pb2).
//   -> {"tell": {"id", "value"}}   or "values": one an objective; null, NaN: infeasible    no reply
//                         "cost": cost of the trial until then, failed attempts included, in one
//                         unit for all trials; at least 0, null or left out: not known
//   -> {"report": {"id", "step", "value"}}   <- {"decision": "continue"|"stop"|"pause"}
//      A report at resource.max is the trial's result; a stopped trial takes no more reports, a
//      paused one none until it is resumed.
//   An invalid line: <- {"error": why, "line": its number}, and the session continues.
//
// Protocol 2 (docs/suggest.md) adds, for clients that ask for it:
//   -> any request with "re": N beside its verb: its reply or error has the same "re"; with
//      "ack": true, requests without a reply are answered                        <- {"ok": true}
//      study also has "trials": how many there are already
//   -> {"hello": 2}, the highest protocol known; also before the study
//                                       <- {"hello": {"protocol", "version", "algorithms": [...]}}
//   -> {"best": true}                   <- {"best": {"id", "params", "value"} | null}, or with
//                                       several objectives {"front": [{"id", "params", "values"}]}
//      of the completed feasible trials
//   -> study with "first": [params, ...], points to try first, which may be partial; "known":
//      [{"params", "value"|"values", "step"}], results from elsewhere; "constraints": [{"metric",
//      "min", "max"}] on "metrics": {name: number} of a tell or report: a trial outside one is
//      infeasible
//      and "objectives": their names, with which `--study` stores them, instead of value, or
//      value0, value1 ...
//   -> {"first": [...]}, {"known": [...]}: the same at any time after the study    no reply
//   A tell of a trial that its own last report ended is accepted if it has the same value, or none.
//
// With "cost_aware": true (auto, gp, ehvi) the search learns from the costs in tell and report, and
// prefers points with more gain for their cost; less so the more of max_trials or max_cost is used
// up. No new trials begin once the costs reach max_cost.
//
// With a resource of several steps, one objective and no early_stopping, the algorithm `auto` means
// `bohb`: replies say which trials pause and which resume (search/rungs/promotion.h). hyperband,
// bohb and the rule asha with "promote": true do the same by name. A program that cannot resume
// uses another rule, or {"name": "none"}.
//
// pbt and pb2 train a population of max_trials: at every "interval" a trial pauses, and an ask
// either resumes it or begins another in its place from the checkpoint of a better one. The program
// must keep a trial's checkpoints at its last three pauses. A null value means that the trial
// failed.
//
// Search, seeds and answers are the same as in `fettle run` (search/search.h).
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>

namespace fettle::cli {

// The place of a study that outlives the process.
struct SuggestPlace {
  std::string root;   // the directory .fettle
  std::string study;  // its name
};

// Serves until the end of input. `place` (fettle suggest --study): keeps the study there, in the
// store of `fettle run`; the study line of a stored study continues it. Returns the exit code: 0,
// or 3 if the input cannot be read or the output cannot be written. One thread; flushes after every
// reply.
int run_suggest(std::istream& in, std::ostream& out,
                std::optional<SuggestPlace> place = std::nullopt);

}  // namespace fettle::cli
