// fettle status: how a study stands, or all studies in a list. Works while one runs and after.
#include <iostream>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/recorded_study.h"
#include "cli/screen.h"
#include "cli/summary.h"
#include "cli/terminal.h"

namespace fettle::cli {
namespace {

int fail(const Error& error) {
  std::cerr << "fettle: " << error.message << '\n';
  return exit_code_of(error.code);
}

Line list_row(const RecordedStudy& recorded) {
  const RunView& view = recorded.view;
  const api::StudyStatus& status = view.study.status;
  const std::int64_t ended = status.trials.completed + status.trials.stopped + status.trials.failed;
  std::string best = "-";
  if (!status.best.empty() && !status.best.front().objectives.empty()) {
    best = format_number(status.best.front().objectives[0]) + ' ' +
           printable(view.study.spec.objectives[0].metric);
  }
  const double age = static_cast<double>(recorded.now_ms - view.study.metadata.created_ms) / 1000;
  return {{view.study.metadata.name, Ink::kBold},
          {state_of(view)},
          {format_count(ended) + "/" + format_count(view.study.spec.budget.trials)},
          {best},
          {format_elapsed(age)}};
}

int list_studies(const std::string& root, Output output, const Style& style) {
  int code = kExitSucceeded;
  std::vector<Line> rows;
  Json list = Json::array();
  for (const std::string& name : local::recorded_studies(root)) {
    const auto recorded = read_recorded_study(root, name);
    if (!recorded.ok()) {
      code = fail(recorded.error());
      continue;
    }
    rows.push_back(list_row(*recorded));
    list.push_back(summary_json(recorded->view, recorded->layout));
  }
  if (output == Output::kJson) {
    std::cout << list.dump() << '\n';
    return code;
  }
  if (rows.empty() && code == kExitSucceeded) {
    std::cout << "No studies in " << root << ".\n";
    return code;
  }
  const std::vector<Line> lines =
      table({{"study"}, {"state"}, {"trials", true}, {"best"}, {"age", true}}, rows);
  for (const Line& line : lines) std::cout << render_line(line, kAnyWidth, style) << '\n';
  return code;
}

void print_events(const RunView& view, Output output) {
  for (const Happening& happening : view.happenings) {
    std::cout << (output == Output::kJson
                      ? happening.data.dump()
                      : render_happening(happening, view.study.status.started_ms))
              << '\n';
  }
}

}  // namespace

int status_command(const StatusOptions& options) {
  const Style style = style_of_stdout();
  if (options.study.empty()) return list_studies(options.root, options.output, style);
  const auto recorded = read_recorded_study(options.root, options.study);
  if (!recorded.ok()) return fail(recorded.error());
  if (options.events) {
    print_events(recorded->view, options.output);
  } else if (options.output == Output::kJson) {
    std::cout << summary_json(recorded->view, recorded->layout).dump() << '\n';
  } else {
    std::cout << render_screen(recorded->view, columns_of_stdout(), kAllRows, style);
  }
  return kExitSucceeded;
}

}  // namespace fettle::cli
