#include "cli/views/best_schedule.h"

#include "api/study/study_json.h"
#include "api/yaml/yaml_text.h"
#include "cli/terminal/text.h"
#include "core/replay/lineage.h"

namespace fettle::cli {
namespace {

std::vector<core::Leg> legs_of(const RunView& view) {
  const api::BestTrial& best = view.study.status.best.front();
  return core::lineage_of(view.trials, best.trial, best.step);
}

std::optional<double> objective_of(const core::Leg& leg) {
  return leg.values.empty() ? std::nullopt : leg.values.front();
}

}  // namespace

std::string render_schedule(const RunView& view) {
  const api::StudySpec& spec = view.study.spec;
  std::vector<Line> rows;
  for (const core::Leg& leg : legs_of(view)) {
    const std::optional<double> objective = objective_of(leg);
    rows.push_back({{leg.trial->metadata.name},
                    {std::to_string(leg.from_step)},
                    {std::to_string(leg.until_step)},
                    {objective ? format_number(*objective) : "-"},
                    {format_parameters(leg.trial->spec.parameters)}});
  }
  const std::string unit = printable(spec.resource.unit);
  return render_lines(table({{"trial"},
                             {"from " + unit, true},
                             {"until", true},
                             {printable(spec.objectives[0].metric), true},
                             {"parameters"}},
                            rows),
                      kAnyWidth, {});
}

Json schedule_json(const RunView& view) {
  const auto leg_json = [](const core::Leg& leg) {
    return Json::object({{"trial", leg.trial->metadata.name},
                         {"from", leg.from_step},
                         {"until", leg.until_step},
                         {"seed", leg.trial->spec.seed},
                         {"parameters", leg.trial->spec.parameters},
                         {"objective", objective_of(leg)}});
  };
  return Json::object({{"study", view.study.metadata.name},
                       {"trial", view.study.status.best.front().trial},
                       {"legs", Json::array_of(legs_of(view), leg_json)}});
}

Result<std::string> schedule_study(const RunView& view) {
  const std::vector<core::Leg> legs = legs_of(view);
  if (legs.empty() || legs.front().from_step != 0) {
    return not_found("the schedule of study " + view.study.metadata.name +
                     " cannot be trained again: the trials at its beginning were deleted");
  }
  const api::BestTrial& best = view.study.status.best.front();
  const api::Study study = core::replay_of(view.study, legs);
  Json document = api::write_study(study);
  document.set("metadata", Json::object({{"name", study.metadata.name}}));
  document.erase("status");
  return "# Trains the schedule of " + best.trial + " again, which came to " +
         objectives_text(view.study.spec, best) + ".\n" +
         "# Without the seeds, and with more budget.trials, it says how much of that was luck.\n" +
         api::to_yaml(document, 0);
}

}  // namespace fettle::cli
