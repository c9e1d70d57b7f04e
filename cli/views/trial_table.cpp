#include "cli/views/trial_table.h"

#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "api/trial/trial_json.h"
#include "cli/views/repeated_reasons.h"
#include "cli/views/replicates.h"
#include "core/facts/history.h"

namespace fettle::cli {
namespace {

Ink ink_of(const api::Trial& trial) {
  switch (trial.status.phase) {
    case api::TrialPhase::kCompleted:
      return Ink::kGood;
    case api::TrialPhase::kFailed:
      return Ink::kBad;
    case api::TrialPhase::kRunning:
      return Ink::kAccent;
    default:
      return Ink::kPlain;
  }
}

std::int64_t step_of(const api::Trial& trial) {
  return trial.status.report ? trial.status.report->step : 0;
}

Line row_of(const RunView& view, const api::Trial& trial, RepeatedReasons& reasons) {
  Line row = {{trial.metadata.name}, {phase_of(view, trial), ink_of(trial)}};
  if (core::counts_steps(view.study.spec)) {
    row.push_back({std::to_string(step_of(trial)) + '/' + std::to_string(trial.spec.until_step)});
  }
  for (std::size_t i = 0; i < view.study.spec.objectives.size(); ++i) {
    const auto value = objective_now(view.study.spec, trial, i);
    row.push_back({ended_infeasible(trial) ? "infeasible" : value ? format_number(*value) : "-"});
  }
  row.push_back({format_elapsed(running_seconds(trial, view.now_ms))});
  for (const api::Parameter& parameter : view.study.spec.parameters) {
    const Json* value = trial.spec.parameters.find(parameter.name);
    row.push_back({value != nullptr ? format_value(*value) : "-"});
  }
  std::string note = repeats_text(trial);
  const std::string why = reasons.shorten(trial.metadata.name, printable(ending_of(trial)));
  if (!note.empty() && !why.empty()) note += ": ";
  row.push_back({note + why, Ink::kDim});
  return row;
}

// The shortest text that reads back as the same number.
std::string exact(double value) { return Json(value).dump(); }

std::string csv_cell(const std::string& text) {
  std::string safe = printable(text);
  // A spreadsheet would take it for a formula. Not "-", with which numbers begin.
  if (!safe.empty() && std::string_view("=+@").find(safe[0]) != std::string_view::npos) {
    safe.insert(0, 1, '\'');
  }
  if (safe.find_first_of(",\"") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return line + '\n';
}

std::vector<std::string> csv_header(const api::StudySpec& spec) {
  std::vector<std::string> header = {"trial", "index", "phase", "step"};
  for (const api::Objective& objective : spec.objectives) header.push_back(objective.metric);
  header.insert(header.end(), {"infeasible", "seconds", "runs"});
  for (const api::Parameter& parameter : spec.parameters) {
    header.push_back("parameters." + parameter.name);
  }
  if (spec.replicates) header.emplace_back("repeats");
  header.emplace_back("message");
  return header;
}

std::vector<std::string> csv_cells(const RunView& view, const api::Trial& trial) {
  std::vector<std::string> cells = {trial.metadata.name, std::to_string(trial.spec.index),
                                    phase_of(view, trial), std::to_string(step_of(trial))};
  for (std::size_t i = 0; i < view.study.spec.objectives.size(); ++i) {
    const auto value = objective_now(view.study.spec, trial, i);
    cells.push_back(value ? exact(*value) : "");
  }
  cells.emplace_back(ended_infeasible(trial) ? "true" : "false");
  cells.push_back(exact(running_seconds(trial, view.now_ms)));
  const api::RunRecord* run = newest_run(trial);
  // Runs are numbered from 0; the number of records is no count, since old records are pruned.
  cells.push_back(std::to_string(run != nullptr ? run->run + 1 : 0));
  for (const api::Parameter& parameter : view.study.spec.parameters) {
    const Json* value = trial.spec.parameters.find(parameter.name);
    const bool text = value != nullptr && value->is_string();
    cells.push_back(value == nullptr ? "" : text ? value->as_string() : value->dump());
  }
  if (view.study.spec.replicates) cells.push_back(trial.spec.search.replicates);
  cells.push_back(ending_of(trial));
  return cells;
}

}  // namespace

std::string render_trials(const RunView& view, int columns, const Style& style) {
  std::vector<Column> header = {{"trial"}, {"phase"}};
  if (core::counts_steps(view.study.spec))
    header.push_back({printable(view.study.spec.resource.unit)});
  for (const api::Objective& objective : view.study.spec.objectives) {
    header.push_back({printable(objective.metric), true});
  }
  header.push_back({"time", true});
  for (const api::Parameter& parameter : view.study.spec.parameters) {
    header.push_back({printable(parameter.name), true});
  }
  header.push_back({""});
  std::vector<Line> rows;
  RepeatedReasons reasons;
  for (const api::TrialPtr& trial : view.trials) rows.push_back(row_of(view, *trial, reasons));
  return render_lines(table(header, rows), columns, style);
}

std::string trials_csv(const RunView& view) {
  std::string text = csv_line(csv_header(view.study.spec));
  for (const api::TrialPtr& trial : view.trials) text += csv_line(csv_cells(view, *trial));
  return text;
}

std::string trials_json(const RunView& view) {
  std::string text = "[";
  for (std::size_t i = 0; i < view.trials.size(); ++i) {
    text += (i > 0 ? ",\n " : "\n ") + api::write_trial(*view.trials[i]).dump();
  }
  return text + (view.trials.empty() ? "]\n" : "\n]\n");
}

}  // namespace fettle::cli
