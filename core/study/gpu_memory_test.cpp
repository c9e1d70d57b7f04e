// The GPU memory that trials request, given the reports and the use of other trials of their Study.
#include "core/study/gpu_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "api/fields/quantity.h"
#include "api/trial/report.h"
#include "core/facts/sizing.h"

namespace fettle::core {
namespace {

constexpr double kGi = 1024.0 * 1024 * 1024;

// The known facts about a trial, in GiB; 0 = unknown.
struct Known {
  double width = 0;  // a parameter that decides about shapes
  double planned = 0;
  double used = 0;
  double had = 0;
  double short_of = -1;  // the need that its newest run names; 0: none named; -1: it had enough
};

api::StudySpec spec_of() {
  api::StudySpec spec;
  spec.trial.gpu.emplace().memory = api::kAutoAmount;
  spec.parameters.resize(2);
  spec.parameters[0].name = "width";
  spec.parameters[0].sets = "model.layers[0].units";
  spec.parameters[1].name = "rate";
  spec.parameters[1].sets = "training.learningRate";
  return spec;
}

Json parameters_of(double width, double rate) {
  return Json::object({{"width", width}, {"rate", rate}});
}

api::TrialPtr trial_of(const Known& known, std::int64_t index) {
  auto trial = std::make_shared<api::Trial>();
  trial->metadata.name = "digits-" + std::to_string(index);
  trial->spec.index = index;
  trial->spec.parameters = parameters_of(known.width, 0.1 * static_cast<double>(index));
  if (known.planned > 0 || known.used > 0) {
    api::Report& report = trial->status.report.emplace();
    if (known.planned > 0) report.metrics[api::kGpuMemoryPlanned] = known.planned * kGi;
    if (known.used > 0) report.metrics[api::kGpuMemoryUsed] = known.used * kGi;
  }
  if (known.had > 0) {
    api::RunRecord& run = trial->status.runs.emplace_back();
    run.gpu_memory = trial->spec.gpu_memory.emplace(known.had * kGi);
    if (known.short_of >= 0) run.outcome = api::Outcome::kOutOfMemory;
    if (known.short_of >= 0) run.gpu_memory_short = known.short_of * kGi;
  }
  return trial;
}

class GpuMemoryTest : public testing::Test {
 protected:
  api::StudySpec spec_ = spec_of();

  // The request of a new trial of that width, in GiB.
  double wanted(const std::vector<Known>& known, double width, std::optional<double> most = {}) {
    learn(known);
    if (most) *most *= kGi;
    return GpuMemory(spec_, ledger_).wanted(parameters_of(width, 0.7), most) / kGi;
  }
  // The request for the next run of the last of them, in GiB; 0 if absent.
  double next(const std::vector<Known>& known, double most) {
    learn(known);
    EXPECT_TRUE(needs_more_gpu_memory(*ledger_.trials().back()));
    const GpuMemory memory(spec_, ledger_);
    return memory.wanted_next(*ledger_.trials().back(), most * kGi).value_or(0) / kGi;
  }

 private:
  void learn(const std::vector<Known>& known) {
    std::vector<api::TrialPtr> trials;
    for (const Known& one : known) trials.push_back(trial_of(one, std::ssize(trials)));
    api::Study study;
    study.spec = spec_;
    ledger_.update(study, trials);
  }

  Ledger ledger_;
};

TEST_F(GpuMemoryTest, AnUnknownNeedIsPlannedByTheTrainer) {
  EXPECT_EQ(wanted({}, 64), 1);
  EXPECT_EQ(wanted({{.width = 128, .planned = 20}}, 64), 1) << "another shape says nothing of it";
}

TEST_F(GpuMemoryTest, LikeTrialsNeedTheSameForAnyLearningRate) {
  const std::vector<Known> known = {{.width = 64, .planned = 30}, {.width = 32, .planned = 2}};
  EXPECT_EQ(wanted(known, 64), 33.5) << "30 and a tenth, and half a GiB";
  EXPECT_EQ(wanted(known, 64, 32), 32) << "no more than there is";
}

TEST_F(GpuMemoryTest, ATrialWithMomentumNeedsItsState) {
  spec_.parameters[1].sets = "training.momentum";  // 0 in the first trial, 0.1 in the second
  EXPECT_EQ(wanted({{.width = 8, .planned = 4, .used = 4}}, 8), 1) << "it had no state";
  EXPECT_GT(
      wanted({{.width = 8, .planned = 4, .used = 4}, {.width = 8, .planned = 6, .used = 6}}, 8), 6);
}

TEST_F(GpuMemoryTest, LearnsTheMarginFromTheUseOfTrials) {
  const Known seen = {.width = 32, .planned = 10, .used = 10.5, .had = 12};
  EXPECT_EQ(wanted({seen}, 32), 11.25) << "10.5 and 5 percent";
  EXPECT_EQ(wanted({seen, {.width = 64, .planned = 30}}, 64), 32.25)
      << "half a GiB beside the plan instead of 3.5";
  const Known of_others = {.width = 32, .planned = 10, .used = 70, .had = 12};
  EXPECT_EQ(wanted({of_others}, 32), 12.75) << "NVML counts what others use of the card, too";
}

TEST_F(GpuMemoryTest, AShortTrialGetsItsRequestOrHalfAsMuchAgain) {
  EXPECT_EQ(next({{.width = 64, .had = 1, .short_of = 30}}, 80), 33.5);
  EXPECT_EQ(next({{.width = 64, .had = 40, .short_of = 0}}, 80), 60);
  EXPECT_EQ(next({{.width = 64, .had = 60, .short_of = 0}}, 80), 80) << "the largest there is";
  EXPECT_EQ(next({{.width = 64, .had = 75, .short_of = 79}}, 80), 80) << "the plan fits it";
  EXPECT_EQ(next({{.width = 64, .planned = 30, .used = 20, .had = 40, .short_of = 20}}, 80), 40.25)
      << "whatever it says, it is more than it had";
}

TEST_F(GpuMemoryTest, WithoutALargerGpuThereIsNoNextRun) {
  EXPECT_EQ(next({{.width = 64, .had = 80, .short_of = 0}}, 80), 0);
  EXPECT_EQ(next({{.width = 64, .had = 1, .short_of = 95}}, 80), 0);
}

TEST_F(GpuMemoryTest, TrialsOfOneShapeShareTheirMeasuredNeed) {
  EXPECT_EQ(wanted({{.width = 64, .had = 40, .short_of = 0}}, 64), 60);
  EXPECT_EQ(
      next({{.width = 64, .planned = 50, .had = 56}, {.width = 64, .had = 1, .short_of = 0}}, 80),
      55.5);
}

TEST_F(GpuMemoryTest, ANeedBeyondEveryGpuIsRefusedWithoutWaiting) {
  EXPECT_EQ(wanted({{.width = 64, .had = 1, .short_of = 95}}, 64, 80), 1);
  EXPECT_EQ(wanted({{.width = 64, .had = 1, .short_of = 79}}, 64, 80), 80) << "the plan fits it";
  EXPECT_EQ(wanted({{.width = 64, .had = 80, .short_of = 0}}, 64, 80), 80) << "it may be less";
}

TEST_F(GpuMemoryTest, ATrialThatWasGivenMoreNeedsNoMore) {
  api::Trial trial = *trial_of({.width = 64, .had = 1, .short_of = 30}, 0);
  EXPECT_TRUE(needs_more_gpu_memory(trial));
  trial.spec.gpu_memory = 33 * kGi;
  EXPECT_FALSE(needs_more_gpu_memory(trial));
  trial.spec.gpu_memory = kGi;
  trial.status.phase = api::TrialPhase::kCompleted;
  EXPECT_FALSE(needs_more_gpu_memory(trial));
}

}  // namespace
}  // namespace fettle::core
