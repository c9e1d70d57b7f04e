#include "cli/views/screen.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "api/trial/display.h"
#include "cli/views/replicates.h"
#include "core/facts/history.h"

namespace fettle::cli {
namespace {

constexpr int kMinColumns = 20;
constexpr int kMostTitleColumns = 120;  // a file has no right-hand edge
constexpr int kStepBarColumns = 8;
constexpr int kMostEvents = 6;
constexpr int kFewestRunning = 2;   // running trials shown before anything else gives way
constexpr int kMostParameters = 6;  // columns of parameters in the table of running trials
constexpr std::size_t kMostOfFront = 8;

using Lines = std::vector<Line>;

Span dot(const Style& style) { return {style.unicode ? " · " : " - ", Ink::kDim}; }

Ink ink_of_state(const std::string& state) {
  if (state == "succeeded") return Ink::kGood;
  if (state == "failed") return Ink::kBad;
  return Ink::kAccent;
}

Line title_line(const RunView& view, int columns, const Style& style) {
  const std::string state = state_of(view);
  Line line = {
      {printable(view.study.metadata.name), Ink::kBold}, dot(style), {state, ink_of_state(state)}};
  const std::string elapsed = format_elapsed(elapsed_seconds(view)) + " elapsed";
  int used = 0;
  for (const Span& span : line) used += display_width(span.text);
  const int gap = std::min(columns, kMostTitleColumns) - used - display_width(elapsed);
  if (gap < 3) return line;
  line.push_back({std::string(static_cast<std::size_t>(gap), ' ')});
  line.push_back({elapsed, Ink::kDim});
  return line;
}

Line progress_line(const RunView& view, int columns, const Style& style) {
  const api::TrialCounts& counts = view.study.status.trials;
  const std::int64_t ended = counts.completed + counts.stopped + counts.failed;
  const std::optional<std::int64_t> total = planned_trials(view.study);
  std::string text = "  " + of_planned_trials(view.study, ended);
  const auto left = view.study.status.eta_seconds;
  if (left && *left >= 1 && state_of(view) == "running")
    text += ", about " + format_elapsed(*left) + " left";
  if (!total) return {{text + " ended"}};
  const int width = std::clamp(columns - display_width(text), 0, 60);
  const double fraction = *total > 0 ? static_cast<double>(ended) / static_cast<double>(*total) : 0;
  return {{bar(fraction, width, style), Ink::kAccent}, {text}};
}

Line counts_line(const RunView& view, const Style& style) {
  const api::TrialCounts& counts = view.study.status.trials;
  const Ink failed = counts.failed > 0 ? Ink::kBad : Ink::kPlain;
  // A study whose runner was killed runs nothing, whatever was recorded last.
  return {{format_count(counts.running) + (view.interrupted ? " cut off" : " running")},
          dot(style),
          {format_count(counts.completed) + " completed", Ink::kGood},
          dot(style),
          {format_count(counts.stopped) + " stopped early"},
          dot(style),
          {format_count(counts.failed) + " failed", failed},
          dot(style),
          {format_count(counts.infeasible) + " infeasible"}};
}

std::vector<const api::Trial*> running_trials(const RunView& view) {
  std::vector<const api::Trial*> running;
  for (const api::TrialPtr& trial : view.trials) {
    if (trial->status.phase == api::TrialPhase::kRunning) running.push_back(trial.get());
  }
  return running;
}

std::string step_text(const api::Trial& trial, const Style& style) {
  const std::int64_t step = trial.status.report ? trial.status.report->step : 0;
  const std::int64_t until = std::max<std::int64_t>(trial.spec.until_step, 1);
  return bar(static_cast<double>(step) / static_cast<double>(until), kStepBarColumns, style) + ' ' +
         std::to_string(step) + '/' + std::to_string(until);
}

std::optional<api::Throughput> throughput_of(const api::Trial& trial) {
  if (!trial.status.report) return std::nullopt;
  return api::throughput_of(trial.status.report->metrics);
}

// Returns the unit of the first trial that reports throughput, or ""; a study's trials share their
// data.
std::string throughput_unit(const std::vector<const api::Trial*>& trials) {
  for (const api::Trial* trial : trials) {
    if (const auto throughput = throughput_of(*trial)) return std::string(throughput->unit);
  }
  return "";
}

// `has_throughput`: whether the table has that column.
Line running_row(const RunView& view, const api::Trial& trial, bool has_throughput,
                 const Style& style) {
  const auto value = objective_now(view.study.spec, trial);
  Line row = {{trial.metadata.name, Ink::kAccent}};
  if (core::counts_steps(view.study.spec)) row.push_back({step_text(trial, style)});
  row.push_back({value ? format_number(*value) : "-"});
  if (has_throughput) {
    const auto rate = throughput_of(trial);
    const bool known = rate && std::isfinite(rate->value);
    row.push_back({known ? format_count(std::llround(rate->value)) : "-"});
  }
  row.push_back({format_elapsed(running_seconds(trial, view.now_ms))});
  const auto& parameters = view.study.spec.parameters;
  for (std::size_t i = 0; i < parameters.size() && i < kMostParameters; ++i) {
    const Json* given = trial.spec.parameters.find(parameters[i].name);
    row.push_back({given != nullptr ? format_value(*given) : "-"});
  }
  row.push_back({repeats_text(trial), Ink::kDim});
  return row;
}

// A title and one row for each running trial, at most `most` of them.
Lines running_section(const RunView& view, int most, const Style& style) {
  const std::vector<const api::Trial*> running = running_trials(view);
  if (running.empty() || most <= 0) return {};
  const std::string unit = throughput_unit(running);
  const api::StudySpec& spec = view.study.spec;
  std::vector<Column> columns = {{.title = "trial"}};
  if (core::counts_steps(spec)) columns.push_back({.title = printable(spec.resource.unit)});
  columns.push_back({.title = printable(spec.objectives[0].metric), .right_aligned = true});
  if (!unit.empty()) columns.push_back({.title = unit, .right_aligned = true});
  columns.push_back({.title = "time", .right_aligned = true});
  const auto& parameters = spec.parameters;
  for (std::size_t i = 0; i < parameters.size() && i < kMostParameters; ++i) {
    columns.push_back({.title = printable(parameters[i].name), .right_aligned = true});
  }
  columns.push_back({.title = ""});
  const std::size_t shown = std::min(running.size(), static_cast<std::size_t>(most));
  Lines rows;
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(running_row(view, *running[i], !unit.empty(), style));
  }
  Lines lines = table(columns, rows);
  if (shown < running.size()) {
    lines.push_back({{"  and " + std::to_string(running.size() - shown) + " more", Ink::kDim}});
  }
  return lines;
}

Lines best_section(const RunView& view, int columns, const Style& style) {
  if (view.study.status.best.empty()) return {};
  const api::BestTrial& best = view.study.status.best.front();
  Line first = {{"best  ", Ink::kDim},
                {objectives_text(view.study.spec, best), Ink::kGood},
                {"  " + best.trial + at_step(view.study.spec, best.step)}};
  if (view.study.status.best.size() > 1) {
    first.push_back(
        {", one of " + std::to_string(view.study.status.best.size()) + " on the front", Ink::kDim});
  }
  Lines lines = {first, {{"      " + format_parameters(best.parameters)}}};
  const std::string again = replicates_text(best);
  if (!again.empty()) lines.push_back({{"      " + again}});
  std::vector<double> curve;
  for (const TrialResult& result : results_in_order(view.study.spec, view.trials)) {
    if (result.is_replicate) continue;
    curve.push_back(result.best_so_far || curve.empty() ? result.value : curve.back());
  }
  const std::string line = sparkline(curve, std::min(columns - 6, 60), style);
  if (curve.size() > 1 && !line.empty()) {
    lines.push_back({{"      "},
                     {line, Ink::kAccent},
                     {"  best so far, " + plural(std::ssize(curve), "result"), Ink::kDim}});
  }
  return lines;
}

// Returns the Pareto front, the best first objective first; empty for a single trial.
Lines front_section(const RunView& view) {
  const std::vector<api::BestTrial>& front = view.study.status.best;
  if (front.size() < 2) return {};
  Line title = {{"front  ", Ink::kDim}, {plural(std::ssize(front), "trial")}};
  const std::optional<double>& volume = view.study.status.hypervolume;
  if (volume) title.push_back({", hypervolume " + format_number(*volume)});
  Lines lines = {title};
  const std::size_t shown = std::min(front.size(), kMostOfFront);
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back({{"      " + front[i].trial + "  ", Ink::kAccent},
                     {objectives_text(view.study.spec, front[i])}});
  }
  if (shown < front.size()) {
    lines.push_back({{"      and " + std::to_string(front.size() - shown) + " more", Ink::kDim}});
  }
  return lines;
}

std::string budget_text(const RunView& view) {
  const api::Budget& budget = view.study.spec.budget;
  const api::StudyStatus& status = view.study.status;
  std::string text = of_planned_trials(view.study, status.trials.created) + " started, ";
  text += format_elapsed(status.active_seconds);
  if (budget.wall_time) text += " of " + format_elapsed(*budget.wall_time);
  if (budget.gpu_hours) {
    text += ", " + format_number(status.gpu_hours) + " of " + format_number(*budget.gpu_hours) +
            " GPU-hours";
  }
  if (status.trials.failed > 0) {
    text += ", " + format_count(status.trials.failed);
    text += budget.failures < api::kNoTrialLimit
                ? " of " + format_count(budget.failures) + " accepted failures"
                : " failed";
  }
  return text;
}

Lines event_section(const RunView& view, int most) {
  Lines lines;
  const std::size_t shown =
      std::min(view.timeline.size(), static_cast<std::size_t>(std::clamp(most, 0, kMostEvents)));
  for (std::size_t i = view.timeline.size() - shown; i < view.timeline.size(); ++i) {
    const TimelineEntry& entry = view.timeline[i];
    lines.push_back({{render_entry(entry, view.study.status.started_ms),
                      entry.warning ? Ink::kBad : Ink::kDim}});
  }
  return lines;
}

// Appends a section with an empty line before it, unless `lines` would then be more than `rows`.
void append_section(Lines& lines, const Lines& section, int rows) {
  if (section.empty() || static_cast<int>(lines.size() + section.size()) + 1 > rows) return;
  lines.emplace_back();
  lines.insert(lines.end(), section.begin(), section.end());
}

// Lays out the sections from top to bottom. Each leaves room for the more important sections below
// it: the notice and, before the front, the budget. The events get the rest.
Lines lay_out(const RunView& view, int columns, int rows, const Style& style) {
  Lines lines = {title_line(view, columns, style), progress_line(view, columns, style),
                 counts_line(view, style)};
  const Lines best = best_section(view, columns, style);
  Lines budget = {{{"budget  ", Ink::kDim}, {budget_text(view)}}};
  if (!view.workers.empty()) budget.push_back({{"workers ", Ink::kDim}, {view.workers}});
  const Lines notice =
      view.notice.empty() ? Lines{} : Lines{{{printable(view.notice), Ink::kBold}}};
  const auto height = [](const Lines& section) {
    return section.empty() ? 0 : static_cast<int>(section.size()) + 1;
  };
  const int others =
      static_cast<int>(lines.size()) + height(best) + height(budget) + height(notice);
  // The table also needs an empty line, a header and "and n more".
  const int room_for_running = std::max(rows - others - 3, kFewestRunning);
  append_section(lines, running_section(view, room_for_running, style), rows - height(notice));
  append_section(lines, best, rows - height(notice));
  append_section(lines, front_section(view), rows - height(notice) - height(budget));
  append_section(lines, budget, rows - height(notice));
  const int room = rows - height(notice) - static_cast<int>(lines.size()) - 1;
  append_section(lines, event_section(view, room), rows - height(notice));
  append_section(lines, notice, rows);
  return lines;
}

}  // namespace

std::string render_screen(const RunView& view, int columns, int rows, const Style& style) {
  const int width = std::max(columns, kMinColumns);
  Lines lines = lay_out(view, width, rows, style);
  if (static_cast<int>(lines.size()) > rows)
    lines.resize(static_cast<std::size_t>(std::max(rows, 0)));
  return render_lines(lines, columns, style);
}

}  // namespace fettle::cli
