#include "tests/scale/crowded_study.h"

#include <utility>

#include "api/fields/enum_names.h"
#include "api/fields/timestamp.h"
#include "api/study/algorithm.h"
#include "search/space/fingerprint.h"
#include "search/study_problem.h"

namespace fettle::scale {
namespace {

constexpr std::int64_t kSteps = 10;
constexpr const char* kStudyUid = "9a1b1c1d-0000-4000-8000-0000000000aa";

Json named(std::int64_t index) {
  const Json owner = Json::object({{"apiVersion", "fettle.dev/v1alpha1"},
                                   {"kind", "Study"},
                                   {"name", "digits"},
                                   {"uid", kStudyUid}});
  const std::string name = "digits-" + std::to_string(index);
  return Json::object(
      {{"name", name},
       {"namespace", "team"},
       {"uid", "3d9c5f3e-0000-4000-8000-" + std::to_string(100'000'000'000 + index)},
       {"resourceVersion", std::to_string(1'000'000 + index)},
       {"generation", 1},
       {"creationTimestamp", "2026-11-21T10:00:00Z"},
       {"labels",
        Json::object({{"fettle.dev/study", "digits"}, {"fettle.dev/study-uid", kStudyUid}})},
       {"ownerReferences", Json(Json::Array{owner})}});
}

Json spec_of(std::int64_t index) {
  const double x = static_cast<double>((index * 7919) % 100'003) / 100'003;
  return Json::object(
      {{"study", "digits"},
       {"index", index},
       {"parameters",
        Json::object({{"x", x}, {"rate", 0.001 + x / 10}, {"width", 32 + index % 32}})},
       {"seed", 4'503'599'627'370 + index},
       {"untilStep", kSteps},
       {"workers", 1},
       {"search", Json::object({{"basis", index}})}});
}

double accuracy(std::int64_t index, std::int64_t step) {
  return 0.5 + static_cast<double>((index * 31 + step * 17) % 977) / 2'000;
}

Json report_of(std::int64_t index, std::int64_t steps, std::int64_t now_ms) {
  Json history = Json::array();
  const auto metrics = [&](std::int64_t step) {
    return Json::object({{"accuracy", accuracy(index, step)},
                         {"trainLoss", 1 - accuracy(index, step)},
                         {"validationLoss", 1.1 - accuracy(index, step)}});
  };
  for (std::int64_t step = 1; step <= steps; ++step) {
    history.push_back(Json::object({{"step", step}, {"metrics", metrics(step)}}));
  }
  return Json::object({{"step", steps},
                       {"metrics", metrics(steps)},
                       {"checkpoint", "/checkpoints/digits-" + std::to_string(index) + "/10.ckpt"},
                       {"checkpointStep", steps},
                       {"time", api::format_timestamp(now_ms)},
                       {"objective", "0.9132"},
                       {"throughput", "4120 images/s"},
                       {"history", std::move(history)}});
}

Json run_of(std::int64_t began_ms) {
  return Json::object({{"run", 0},
                       {"podUID", "3d9c5f3e-0000-4000-9000-000000000000"},
                       {"workers", 1},
                       {"untilStep", kSteps},
                       {"startTime", api::format_timestamp(began_ms)},
                       {"runningTime", api::format_timestamp(began_ms)}});
}

Json object_of(std::int64_t index, Json status) {
  return Json::object({{"apiVersion", "fettle.dev/v1alpha1"},
                       {"kind", "Trial"},
                       {"metadata", named(index)},
                       {"spec", spec_of(index)},
                       {"status", std::move(status)}});
}

}  // namespace

api::Study crowded_study(const std::string& algorithm, std::int64_t ended, std::int64_t running,
                         std::int64_t now_ms) {
  api::Study study;
  study.metadata.name = "digits";
  study.metadata.ns = "team";
  study.metadata.uid = kStudyUid;
  study.metadata.generation = 1;
  study.spec.objectives.emplace_back().metric = "accuracy";
  for (const char* name : {"x", "rate"}) {
    api::Parameter& parameter = study.spec.parameters.emplace_back();
    parameter.name = name;
    parameter.max = 1;
  }
  api::Parameter& width = study.spec.parameters.emplace_back();
  width.name = "width";
  width.type = api::ParameterType::kInteger;
  width.min = 32;
  width.max = 64;
  study.spec.resource = {"epoch", 1, kSteps};
  study.spec.algorithm.name = *api::from_string<api::AlgorithmKind>(algorithm);
  study.spec.budget.trials = ended + running + 1;
  study.spec.budget.parallelism = running;
  study.status.observed_generation = 1;
  study.status.updated_ms = now_ms;
  study.status.started_ms = now_ms - 1'000'000;
  study.status.trials.created = ended + running;
  api::SearchPeriod period = search::settle(study);
  period.computed_by = search::fingerprint();
  study.status.search.push_back(std::move(period));
  return study;
}

Json ended_trial(std::int64_t index, std::int64_t now_ms) {
  const std::int64_t began_ms = now_ms - 3'000'000 + index * 100;
  Json run = run_of(began_ms);
  run.set("endTime", api::format_timestamp(began_ms + 3'000));
  run.set("lastStep", kSteps);
  run.set("outcome", "Succeeded");
  Json fact = Json::object({{"seq", index + 1},
                            {"kind", "Result"},
                            {"step", kSteps},
                            {"values", Json(Json::Array{accuracy(index, kSteps)})},
                            {"time", api::format_timestamp(began_ms + 3'050)}});
  return object_of(index, Json::object({{"phase", "Completed"},
                                        {"runs", Json(Json::Array{std::move(run)})},
                                        {"facts", Json(Json::Array{std::move(fact)})},
                                        {"report", report_of(index, kSteps, began_ms)}}));
}

Json running_trial(std::int64_t index, std::int64_t now_ms) {
  return object_of(index, Json::object({{"phase", "Running"},
                                        {"runs", Json(Json::Array{run_of(now_ms - 1'000)})},
                                        {"report", report_of(index, 3, now_ms)}}));
}

}  // namespace fettle::scale
