#include "api/trial/trial_file.h"

#include "api/fields/field_document.h"
#include "api/fields/field_writer.h"
#include "api/trial/trial_fields.h"

namespace fettle::api {

template <class Visitor, Like<ObjectiveName> T>
void visit_fields(Visitor& v, T& c) {
  v.field("metric", c.metric, "The name of the metric.", metric_name().needed());
  v.field("direction", c.direction, "Maximize or Minimize.", FieldRules{}.needed());
}

template <class Visitor, Like<CheckpointPlace> T>
void visit_fields(Visitor& v, T& c) {
  v.field("directory", c.directory, "Where this trial's checkpoints are.",
          text(0, kLongestFileName));
  v.field("keep", c.keep, "Newest checkpoints kept.", whole(1, 100));
  v.field("keepRungs", c.keep_rungs, "Newest checkpoints at rungs kept besides.", whole(0, 100));
}

template <class Visitor, Like<ParentPlace> T>
void visit_fields(Visitor& v, T& c) {
  v.field("directory", c.directory, "Where the parent's checkpoints are.",
          text(0, kLongestFileName));
  v.field("step", c.step, "The parent's step.", count_from(0));
}

template <class Visitor, Like<GpuPart> T>
void visit_fields(Visitor& v, T& c) {
  v.field("share", c.share, "Of the card.", above(0, 1).needed());
  v.field("memory", c.memory, "Bytes of its memory.", count_from(0));
  v.field("sharing", c.sharing, "How the card is shared.");
  v.field("enforces", c.enforces, "What keeps a worker to its part.");
}

template <class Visitor, Like<TrialFile> T>
void visit_fields(Visitor& v, T& c) {
  v.field("study", c.study, "Name of the Study.", text(0, kLongestName));
  v.field("studyUid", c.study_uid, "Its uid.", text(0, 64));
  v.field("trial", c.trial, "Name of the trial.", text(0, kLongestName));
  v.field("index", c.index, "0, 1, 2 ... within the Study.", count_from(0));
  v.field("run", c.run, "0, 1, 2 ... within the trial.", count_from(0));
  v.field("seed", c.seed, "The trainer's seed.");
  v.field("parameters", c.parameters, "Values of the active parameters.",
          FieldRules{}.as(Form::kObject));
  v.field("untilStep", c.until_step, "The step to reach.", count_from(1).needed());
  v.field("workers", c.workers, "Workers.", whole(1, 1024));
  v.field("leastWorkers", c.least_workers,
          "Number of workers that can continue when others are lost. Default: all.",
          whole(1, 1024));
  v.field("gpusPerWorker", c.gpus_per_worker, "GPUs of each worker, where it has several.",
          whole(1, 64));
  v.field("gpuPart", c.gpu_part, "The part of one GPU that a worker has.");
  v.field("resource", c.resource, "What a step counts.", FieldRules{}.needed());
  v.field("rungs", c.rungs, "Steps that early stopping looks at.", list(0, 100'000));
  v.field("objectives", c.objectives, "What is measured.", list(0, kMostObjectives));
  v.field("parallelism", c.parallelism, "Trials that may run at once.", count_from(1));
  v.field("reportSeconds", c.report_seconds, "Least time between two ordinary reports.",
          number(0, 86'400));
  v.field("heartbeat", c.heartbeat, "Time without a report after which the run counts as hung.",
          duration_above_zero());
  v.field("gracePeriod", c.grace_period, "Time between SIGTERM and SIGKILL.", grace_period());
  v.field("checkpoints", c.checkpoints, "Where checkpoints go.", FieldRules{}.needed());
  v.field("parent", c.parent, "Whose weights to start from.");
  v.field("trainer", c.trainer, "The built-in trainer's configuration, resolved.");
}

Json write_trial_file(const TrialFile& file) { return write_struct(file); }
Result<TrialFile> read_trial_file(const Json& document) {
  return read_document<TrialFile>(document);
}

}  // namespace fettle::api
