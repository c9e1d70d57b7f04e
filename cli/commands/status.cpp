// fettle status: the state of a study, or a list of several. Works during a run and after it.
#include <iostream>

#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/terminal/terminal.h"
#include "cli/views/screen.h"
#include "cli/views/summary.h"

namespace fettle::cli {
namespace {

Line list_row(const SeenStudy& seen) {
  const RunView& view = seen.view;
  const api::StudyStatus& status = view.study.status;
  const std::int64_t ended = status.trials.completed + status.trials.stopped + status.trials.failed;
  const std::optional<std::int64_t> planned = planned_trials(view.study);
  std::string best = "-";
  if (!status.best.empty() && !status.best.front().objectives.empty()) {
    best = format_number(status.best.front().objectives[0]) + ' ' +
           printable(view.study.spec.objectives[0].metric);
  }
  const double age = static_cast<double>(seen.now_ms - view.study.metadata.created_ms) / 1000;
  return {{view.study.metadata.name, Ink::kBold},
          {state_of(view)},
          {format_count(ended) + (planned ? "/" + format_count(*planned) : "")},
          {best},
          {format_elapsed(age)}};
}

Result<int> list_studies(StudySource& source, Output output, const Style& style) {
  FETTLE_ASSIGN(const std::vector<std::string> names, source.names());
  int code = kExitSucceeded;
  std::vector<Line> rows;
  Json list = Json::array();
  for (const std::string& name : names) {
    const auto seen = source.read(name, Detail::kObjects);
    if (!seen.ok()) {
      code = complain(seen.error());
      continue;
    }
    rows.push_back(list_row(*seen));
    list.push_back(summary_json(seen->view, seen->log));
  }
  if (output == Output::kJson) {
    std::cout << list.dump() << '\n';
    return code;
  }
  if (rows.empty() && code == kExitSucceeded) {
    std::cout << "No studies " << source.place() << source.elsewhere() << ".\n";
    return code;
  }
  if (rows.empty()) return code;  // none could be read, and the errors are printed
  std::cout << render_lines(
      table({{"study"}, {"state"}, {"trials", true}, {"best"}, {"age", true}}, rows), kAnyWidth,
      style);
  return code;
}

void print_events(const RunView& view, Output output) {
  for (const TimelineEntry& entry : view.timeline) {
    std::cout << (output == Output::kJson ? entry.data.dump()
                                          : render_entry(entry, view.study.status.started_ms))
              << '\n';
  }
}

}  // namespace

Result<int> status_command(const Target& place, const StatusOptions& options) {
  const Style style = style_of_stdout();
  FETTLE_ASSIGN(const auto source, open_source(place));
  std::string study = options.study;
  if (study.empty()) {
    FETTLE_ASSIGN(const std::vector<std::string> names, source->names());
    // A list stays a list for programs, however short it is.
    const bool lists = options.output == Output::kJson || names.size() != 1;
    if (lists && !options.events) return list_studies(*source, options.output, style);
    FETTLE_ASSIGN(study, default_study(*source));
  }
  FETTLE_ASSIGN(const SeenStudy seen, source->read(study, Detail::kWithEvents));
  if (options.events) {
    print_events(seen.view, options.output);
  } else if (options.output == Output::kJson) {
    std::cout << summary_json(seen.view, seen.log).dump() << '\n';
  } else {
    std::cout << render_screen(seen.view, columns_of_stdout(), kAllRows, style);
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
