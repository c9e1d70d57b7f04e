#include "cli/report/trial_notes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cli/terminal/terminal_text.h"
#include "cli/views/reason.h"
#include "cli/views/repeated_reasons.h"
#include "core/study/best.h"

namespace fettle::cli {
namespace {

// Collects bytes and keeps the end.
class Tail {
 public:
  void feed(std::string_view bytes) {
    text_ += bytes;
    if (text_.size() > 2 * kKept) text_.erase(0, text_.size() - kKept);
  }
  // Whole lines of at most kLogTailBytes, without control sequences.
  std::string lines() const {
    TerminalText filter;
    std::string clean = without_colors(filter.feed(text_));
    if (clean.size() <= kLogTailBytes) return clean;
    const std::size_t from = clean.size() - kLogTailBytes;
    const std::size_t line = clean.find('\n', from);
    if (line != std::string::npos && line + 1 < clean.size()) return clean.substr(line + 1);
    std::size_t start = from;
    while (start < clean.size() && (static_cast<unsigned char>(clean[start]) & 0xC0) == 0x80) {
      ++start;
    }
    return clean.substr(start);
  }

 private:
  // More than is shown: colours are removed, and a line may be cut.
  static constexpr std::size_t kKept = 4 * kLogTailBytes;

  // TerminalText leaves colours: ESC [ ... m. Carriage returns rewrite a line; the last text stays.
  static std::string without_colors(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\x1b') {
        i = std::min(text.find('m', i), text.size());
      } else if (text[i] == '\r') {
        out += '\n';
      } else if (text[i] != '\b') {
        out += text[i];
      }
    }
    return out;
  }

  std::string text_;
};

std::vector<std::string> names_of_failures(const RunView& view) {
  std::set<std::string> causes;
  std::vector<std::string> names;
  for (const api::TrialPtr& trial : view.trials) {
    if (trial->status.phase != api::TrialPhase::kFailed) continue;
    if (causes.insert(without_numbers(ending_of(*trial))).second) {
      names.push_back(trial->metadata.name);
    }
  }
  return names;
}

std::vector<std::string> names_of_results(const RunView& view) {
  const api::StudySpec& spec = view.study.spec;
  std::vector<TrialResult> results = results_in_order(spec, view.trials);
  std::ranges::stable_sort(results, [&spec](const TrialResult& a, const TrialResult& b) {
    return core::is_better(spec.objectives[0], a.value, b.value);
  });
  std::vector<std::string> names;
  for (const TrialResult& result : results) names.push_back(result.trial);
  return names;
}

void add_log(StudySource& source, const SeenStudy& seen, const api::Trial& trial, Json& note) {
  const api::RunRecord* run = newest_run(trial);
  if (run == nullptr) return;
  Tail tail;
  const Status printed = source.print_newest_log(
      seen, trial.metadata.name, [&tail](std::string_view bytes) { tail.feed(bytes); });
  note.set("where", seen.log(trial.metadata.name, run->run));
  if (printed.ok()) {
    note.set("log", tail.lines());
  } else {
    note.set("missing", printed.error().message);
  }
}

}  // namespace

std::vector<std::string> trials_of_interest(const RunView& view) {
  std::vector<std::string> names;
  std::set<std::string> known;
  const auto add = [&](const std::string& name, std::size_t most) {
    if (names.size() < most && known.insert(name).second) names.push_back(name);
  };
  for (const api::BestTrial& best : view.study.status.best) add(best.trial, kMostNotes / 3);
  for (const std::string& name : names_of_failures(view)) add(name, 2 * kMostNotes / 3);
  for (const std::string& name : names_of_results(view)) add(name, kMostNotes);
  return names;
}

Json trial_notes(StudySource& source, const SeenStudy& seen, Logs logs) {
  Json notes = Json::object();
  for (const std::string& name : trials_of_interest(seen.view)) {
    const api::Trial* trial = find_trial(seen.view.trials, name);
    if (trial == nullptr) continue;
    Json note = Json::object();
    const auto reason = reason_of(seen.view, *trial);
    if (reason.ok()) note.set("why", render_reason(seen.view, *trial, *reason));
    if (logs == Logs::kEnds) add_log(source, seen, *trial, note);
    notes.set(name, std::move(note));
  }
  return notes;
}

}  // namespace fettle::cli
