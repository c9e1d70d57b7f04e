// fettle replay: repeats every decision from the recorded facts and compares; or shows the
// decisions of another algorithm or another early stopping.
#include "core/replay/replay.h"

#include <algorithm>
#include <iostream>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/study/study_json.h"
#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/terminal/text.h"
#include "core/replay/what_if.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMostDifferences = 10;

std::int64_t count(std::size_t number) { return static_cast<std::int64_t>(number); }

void print_difference(const core::Difference& difference) {
  std::cout << "\n  " << difference.trial << " (basis " << difference.basis << ")\n"
            << "    recorded  " << printable(difference.recorded) << '\n'
            << "    again     " << printable(difference.decided) << '\n';
}

// Names the decisions about running trials: judgements, promotions or replacements.
std::string judged(const core::Replay& replay) {
  if (replay.replacements > 0) {
    return plural(replay.promotions, "promotion") + " and " +
           plural(replay.replacements, "replacement");
  }
  if (replay.promotions > 0) return plural(replay.promotions, "promotion");
  return plural(replay.judgements, "judgement") + " (" + plural(replay.stops, "stop") + ")";
}

std::string again_text(const core::Replay& replay) {
  return replay.replicates == 0 ? "" : " and " + plural(replay.replicates, "replicate");
}

// Prints whether another program or another machine decided, if the records show it.
void print_elsewhere(const core::Replay& replay) {
  if (replay.elsewhere.empty() || (replay.close == 0 && replay.differences.empty())) return;
  for (const std::string& other : replay.elsewhere) {
    std::cout << "Decided by  " << (other.empty() ? "an earlier version" : printable(other))
              << '\n';
  }
  std::cout << "Here is     " << search::fingerprint() << '\n';
  if (replay.close == 0) return;
  std::cout << "What was computed elsewhere counts as the same if its numbers agree to "
            << core::kCrossMachineTolerance << " of their size: so "
            << plural(replay.close, "suggestion") << (replay.close == 1 ? " does.\n" : " do.\n");
}

int print_replay(const RunView& view, const core::Replay& replay) {
  if (replay.deleted > 0) {
    std::cerr << "fettle: decisions may differ that rested on deleted trials; there are "
              << replay.deleted << '\n';
  }
  // With replacements, the text of judged() contains an "and"; they and replicates exclude each
  // other.
  const bool has_and = replay.replacements > 0 || replay.replicates > 0;
  std::cout << view.study.metadata.name << ": " << plural(replay.suggestions, "suggestion")
            << (has_and ? ", " : " and ") << judged(replay) << again_text(replay)
            << " decided again: ";
  if (replay.differences.empty()) {
    // replay.close: suggestions of another machine that agree to kCrossMachineTolerance only.
    std::cout << "all as recorded" << (replay.close > 0 ? ", but for last digits\n" : "\n");
    print_elsewhere(replay);
    return kExitSucceeded;
  }
  std::cout << plural(count(replay.differences.size()), "difference") << '\n';
  const std::size_t shown = std::min(replay.differences.size(), kMostDifferences);
  for (std::size_t i = 0; i < shown; ++i) print_difference(replay.differences[i]);
  if (shown < replay.differences.size()) {
    std::cout << "\n  and " << replay.differences.size() - shown << " more\n";
  }
  std::cout << '\n';
  print_elsewhere(replay);
  std::cout << (replay.elsewhere.empty()
                    ? "So the study's spec or its facts were changed since.\n"
                    : "That may be the cause; else the study's spec or its facts were changed "
                      "since.\n");
  return kExitFailed;
}

// Returns `study` with the algorithm and the early stopping of the options, each with its defaults
// except the search's seed. Checked like a study that is read. kInvalid: every complaint, one a
// line.
Result<api::Study> with_rules(const api::Study& study, const ReplayOptions& options) {
  api::Study changed = study;
  const bool other_algorithm = !options.algorithm.empty();
  // The recorded choices belong to the Study's own algorithm: the choice of auto, for example.
  if (other_algorithm) changed.status.search.clear();
  Json document = api::write_study(changed);
  Json& spec = *document.find("spec");
  if (other_algorithm) {
    spec.set("algorithm",
             Json::object({{"name", options.algorithm}, {"seed", study.spec.algorithm.seed}}));
  }
  if (!options.early_stopping.empty()) {
    spec.set("earlyStopping", Json::object({{"name", options.early_stopping}}));
  }
  api::ReadStudy read = api::read_study(document);
  if (read.errors.empty()) return std::move(read.study);
  return invalid(api::to_string(read.errors));
}

std::string best_sentence(const core::WhatIf& other) {
  if (other.best.empty()) return "";
  if (other.best == other.best_left) return "The best trial, " + other.best + ", would be kept.\n";
  return "The best trial, " + other.best + ", would have been stopped; the best of the rest is " +
         (other.best_left.empty() ? "none" : other.best_left) + ".\n";
}

void print_stops(const api::Study& study, const core::WhatIf& other) {
  const std::string unit = printable(study.spec.resource.unit);
  std::cout << name_of(study.spec.early_stopping->name) << " would have stopped "
            << plural(count(other.stops.size()), "trial") << " and saved "
            << format_count(other.saved) << " of " << plural(other.steps, unit) << " ("
            << (other.steps > 0 ? other.saved * 100 / other.steps : 0) << " %).\n"
            << best_sentence(other);
  if (other.unknown > 0) {
    std::cout << "It would have let " << plural(other.unknown, "trial")
              << " continue that were stopped: their further results are not known.\n";
  }
  std::vector<Line> rows;
  for (const core::WhatIfStop& stop : other.stops) {
    rows.push_back({{stop.trial},
                    {std::to_string(stop.step)},
                    {std::to_string(stop.reached)},
                    {printable(stop.reason), Ink::kDim}});
  }
  if (rows.empty()) return;
  const auto lines = table({{"trial"}, {"at", true}, {"went to", true}, {"why"}}, rows);
  std::cout << '\n' << render_lines(lines, kAnyWidth, {});
}

void print_suggestions(const api::Study& study,
                       const std::vector<core::ReplayedSuggestion>& suggestions) {
  std::vector<Line> rows;
  std::int64_t same = 0;
  for (const core::ReplayedSuggestion& again : suggestions) {
    const Json& recorded = again.trial->spec.parameters;
    const bool equal = again.point && *again.point == recorded;
    if (equal) ++same;
    rows.push_back({{again.trial->metadata.name},
                    {format_parameters(recorded)},
                    {equal         ? "the same"
                     : again.point ? format_parameters(*again.point)
                                   : "none"}});
  }
  std::cout << name_of(study.spec.algorithm.name) << " would have suggested, of "
            << plural(count(suggestions.size()), "point") << ", " << format_count(same)
            << " alike, knowing in each case what was known then:\n\n";
  const auto lines = table({{"trial"}, {"recorded"}, {name_of(study.spec.algorithm.name)}}, rows);
  std::cout << render_lines(lines, kAnyWidth, {});
}

Result<int> what_if(const RunView& view, const ReplayOptions& options) {
  // with_rules() refuses an unknown name, and knows which one to suggest.
  if (const auto other = api::from_string<api::AlgorithmKind>(options.algorithm)) {
    FETTLE_TRY(core::check_what_if_algorithm(view.study, *other));
  }
  FETTLE_ASSIGN(const api::Study study, with_rules(view.study, options));
  if (!options.early_stopping.empty()) {
    print_stops(study, core::simulate_stopping(study, *study.spec.early_stopping, view.trials));
  }
  if (options.algorithm.empty()) return kExitSucceeded;
  FETTLE_ASSIGN(const auto suggestions, core::replay_suggestions(study, view.trials));
  if (!options.early_stopping.empty()) std::cout << '\n';
  print_suggestions(study, suggestions);
  return kExitSucceeded;
}

}  // namespace

Result<int> replay_command(const Target& place, const ReplayOptions& options) {
  FETTLE_ASSIGN(const SeenStudy seen, read_study(place, options.study));
  if (!options.algorithm.empty() || !options.early_stopping.empty()) {
    return what_if(seen.view, options);
  }
  FETTLE_ASSIGN(const core::Replay replay, core::replay(seen.view.study, seen.view.trials));
  return print_replay(seen.view, replay);
}

}  // namespace fettle::cli
