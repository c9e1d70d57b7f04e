#include "runtime/local/run/fitting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::local {
namespace {

using testing::HasSubstr;

api::Study study_with(const Json& resources, std::int64_t parallelism) {
  api::Study study;
  study.spec.budget.parallelism = parallelism;
  study.spec.budget.trials = 100;
  Json container = Json::object({{"name", "trainer"}});
  container.set("command", Json(Json::Array{"true"}));
  container.set("resources", Json::object({{"requests", resources}}));
  study.spec.trial.pod_template = Json::object(
      {{"spec", Json::object({{"containers", Json(Json::Array{std::move(container)})}})}});
  return study;
}

Room two_cores() {
  Room room;
  room.cores = 2;
  room.memory = std::int64_t{16} << 30;
  return room;
}

TEST(Fitting, TheTightestResourceDecides) {
  const struct {
    Json resources;
    std::int64_t gpus;  // of a trial
    std::int64_t trials;
    const char* why;
  } rows[] = {
      {Json::object(), 0, 2, "has 2 cores, and each trial takes 1 (resources.requests.cpu"},
      {Json::object({{"cpu", "100m"}}), 0, 20, "each trial takes 0.1"},
      {Json::object({{"cpu", "100m"}, {"memory", "4Gi"}}), 0, 4,
       "16.0 GiB of memory, and each trial takes 4.00 GiB (resources.requests.memory"},
      {Json::object({{"memory", "1Ti"}}), 0, 1, "each trial takes 1"},
      {Json::object({{"cpu", "10m"}}), 2, 2, "has 4 GPUs, and each trial takes 2 (spec.trial.gpu)"},
      {Json::object({{"cpu", "1m"}}), 0, 160, "limit on open files of this machine (ulimit -Hn)"},
      {Json::object({{"cpu", 64}}), 0, 1, "each trial takes 64"},
  };
  for (const auto& row : rows) {
    Room room = two_cores();
    room.runs = 160;
    api::Study study = study_with(row.resources, 30);
    if (row.gpus > 0) {
      study.spec.trial.gpu.emplace().count = row.gpus;
      room.gpus = {{"a", "0"}, {"b", "1"}, {"c", "2"}, {"d", "3"}};
    }
    const Fitting fitting = fitting_trials(study, room);
    EXPECT_EQ(fitting.trials, row.trials) << row.why;
    EXPECT_THAT(fitting.why, HasSubstr(row.why));
  }
}

// The trials in the slots of a worker share its GPU, and not its cores.
TEST(Fitting, SlotsShareAGpu) {
  api::Study study = study_with(Json::object({{"cpu", "10m"}, {"memory", "1Gi"}}), 30);
  study.spec.trial.gpu.emplace().count = 1;
  study.spec.trial.execution = api::Execution::kWarm;
  study.spec.trial.slots = 4;
  Room room = two_cores();
  room.gpus = {{"a", "0"}, {"b", "1"}};
  const Fitting fitting = fitting_trials(study, room);
  EXPECT_EQ(fitting.trials, 8);
  EXPECT_THAT(fitting.why, HasSubstr("2 GPUs, and 4 trials (spec.trial.slots) share 1"));
  const Need need = need_of_worker(study);
  EXPECT_EQ(need.gpus, 1);
  EXPECT_DOUBLE_EQ(need.cores, 0.04);
  EXPECT_EQ(need.memory, std::int64_t{4} << 30);
}

// A worker has more files open than a process of one run.
TEST(Fitting, OpenFilesLimitWorkers) {
  api::Study study = study_with(Json::object({{"cpu", "1m"}}), 1'000);
  study.spec.trial.execution = api::Execution::kWarm;
  Room room = two_cores();
  room.runs = 140;
  EXPECT_EQ(fitting_trials(study, room).trials, 100);
}

TEST(Fitting, IsToldWhereItIsLessThanTheStudyAllows) {
  EXPECT_EQ(explain_parallelism(study_with(Json::object(), 2), two_cores()), "");
  EXPECT_EQ(explain_parallelism(study_with(Json::object(), 30), two_cores()),
            "2 trials run at once, although parallelism is 30: this machine has 2 cores, and each "
            "trial takes 1 (resources.requests.cpu of its container)");
  api::Study few = study_with(Json::object(), 30);
  few.spec.budget.trials = 2;
  EXPECT_EQ(explain_parallelism(few, two_cores()), "");
}

TEST(Fitting, WorkersEachTakeWhatTheContainerAsksFor) {
  api::Study study = study_with(Json::object({{"cpu", 2}, {"memory", "1Gi"}}), 4);
  study.spec.trial.gpu.emplace().count = 2;
  const Need need = need_of(study, 3);
  EXPECT_EQ(need.gpus, 6);
  EXPECT_EQ(need.cores, 6);
  EXPECT_EQ(need.memory, std::int64_t{3} << 30);
}

}  // namespace
}  // namespace fettle::local
