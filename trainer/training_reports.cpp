#include "trainer/training_reports.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/trial/metric_names.h"
#include "trainer/model_metrics.h"
#include "trainer/rank0_work.h"
#include "trainer/step/device_metrics.h"
#include "trainer/training_start.h"

namespace fettle::trainer {

namespace metric = api::metric;

// An earlier run may have ended between the checkpoint of an epoch and its report.
bool TrainingReports::repeats_report(const TrainingState& state,
                                     const std::string& resumed_from) const {
  if (parts_.collective.rank() != 0) return false;
  const bool whole_epoch = state.position.offset == 0 && state.position.epoch > 0;
  return whole_epoch && !resumed_from.empty() && parts_.task.new_process;
}

void TrainingReports::repeat_report(const TrainingState& state, const Metrics& results,
                                    const std::string& resumed_from) {
  EpochReport report;
  report.step = report.checkpoint_step = state.position.epoch;
  report.metrics = results;
  report.checkpoint = resumed_from;
  parts_.hooks.report(report);
}

void TrainingReports::report_start(const TrainingState& state) {
  if (parts_.collective.rank() != 0) return;
  if (parts_.hooks.begin) parts_.hooks.begin(state.position.epoch);
}

Status TrainingReports::save_and_report(const TrainingState& state, const Metrics& metrics,
                                        bool final_result) {
  skipped_ = may_skip(state, final_result);
  return report(state, metrics, final_result, /*saves=*/!skipped_);
}

Status TrainingReports::catch_up(const TrainingState& state) {
  if (!std::exchange(skipped_, false)) return success();
  return report(state, {}, /*final_result=*/false, /*saves=*/true);
}

bool TrainingReports::may_skip(const TrainingState& state, bool final_result) const {
  const Position& position = state.position;
  const auto& rungs = parts_.task.keep.rungs;
  if (!keeps_checkpoints_ || final_result || position.offset > 0) return false;
  if (parts_.collective.world_size() > 1) return false;
  if (std::ranges::binary_search(rungs, position.epoch)) return false;
  return parts_.hooks.now() - saved_at_ < parts_.task.between_checkpoints;
}

Status TrainingReports::report(const TrainingState& state, const Metrics& metrics,
                               bool final_result, bool saves) {
  std::string saved;
  if (saves) {
    FETTLE_ASSIGN(saved, save_checkpoint(state));
    saved_at_ = parts_.hooks.now();
  } else {
    FETTLE_TRY(parts_.store.may_write());  // a process that was replaced reports nothing more
  }
  if (parts_.collective.rank() != 0) return success();
  EpochReport report;
  report.step = state.position.epoch;  // a trial counts whole epochs as its steps
  report.metrics = first_metrics(metrics);
  report.final_result = final_result;
  report.checkpoint = saved;
  if (saves) report.checkpoint_step = state.position.epoch;
  report.implementations = implementations_once();
  parts_.hooks.report(report);
  return success();
}

void TrainingReports::report_divergence(const TrainingState& state, const std::string& what,
                                        const Metrics& others) {
  if (parts_.collective.rank() != 0) return;
  const std::int64_t epoch = state.position.epoch + 1;
  parts_.hooks.log(what + " in epoch " + std::to_string(epoch) +
                   ": this configuration diverges; its result is NaN");
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EpochReport report;
  report.step = parts_.task.until_epoch;  // further training would not change the result
  report.metrics = {{metric::kValidationAccuracy, kNaN},
                    {metric::kValidationLoss, kNaN},
                    {metric::kLoss, kNaN},
                    {metric::kInferenceMs, kNaN},
                    {metric::kDivergedEpoch, static_cast<double>(epoch)}};
  if (parts_.task.config.training.quantize)
    report.metrics.emplace_back(metric::kInt8Accuracy, kNaN);
  append(report.metrics, model_metrics(parts_.learner.network().plan()));
  append(report.metrics, others);
  report.final_result = true;
  report.implementations = implementations_once();
  parts_.hooks.report(report);
}

// Nothing is downloaded or gathered if no checkpoints are kept.
Result<std::string> TrainingReports::save_checkpoint(const TrainingState& state) {
  if (!keeps_checkpoints_) return std::string();
  const Span span(&parts_.trace, "checkpoint", "", /*always=*/true);
  FETTLE_ASSIGN(const Checkpoint reached, take_snapshot(parts_, state));
  Result<std::string> saved = std::string();
  // If a worker is lost meanwhile, the next collective fails: the saved checkpoint is reported
  // first.
  (void)do_at_rank0(parts_.collective, {.what = "writes a checkpoint",
                                        .work = [&] { saved = parts_.store.save(reached); },
                                        .log = parts_.hooks.log});
  return saved;
}

Json TrainingReports::implementations_once() {
  const auto& all = parts_.learner.network().implementations();
  if (all.empty() || std::exchange(said_implementations_, true)) return {};
  return to_json(all);
}

}  // namespace fettle::trainer
