// The fields of a Trial document (trial.h), for reading and writing: name, member, description (for
// kubectl explain and messages) and rules (FieldRules{} if left out). A change needs `make crds`.
// See field.h.
#pragma once

#include "api/fields/field.h"
#include "api/study/study.h"
#include "api/study/study_fields.h"
#include "api/trial/report.h"
#include "api/trial/trial.h"

namespace fettle::api {

inline constexpr std::size_t kMostFacts = 100'000;

inline FieldRules count_from(std::int64_t min) { return whole(min, kLargestWhole); }
inline FieldRules metric_values() {
  return list(0, kMaxReportMetrics).as(Form::kAnyNumber).of_text(kLongestMetricName);
}

template <class Visitor, Like<TrialPromotion> T>
void visit_fields(Visitor& v, T& c) {
  v.field("basis", c.basis, "Highest seq of a fact that was known when this was decided.",
          count_from(0));
  v.field("untilStep", c.until_step, "Step to which the trial was promoted.", count_from(0));
}

template <class Visitor, Like<SearchOrigin> T>
void visit_fields(Visitor& v, T& c) {
  v.field("basis", c.basis, "Highest seq of a fact that was known when this was decided.",
          count_from(0));
  v.field("bracket", c.bracket, "Rung at which the trial began, counted from 0.", count_from(0));
  v.field("rung", c.rung, "Rung to which the trial was last promoted.", count_from(0));
  v.field("promotions", c.promotions, "Promotions of the trial from rung to rung.",
          list(0, kMaxPromotions));
  v.field("replaces", c.replaces, "Name of the trial that this one replaced in a population.",
          text(0, kLongestName));
  v.field("replicates", c.replicates, "Name of the trial that this one repeats with another seed.",
          text(0, kLongestName));
}

template <class Visitor, Like<Parent> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trial", c.trial, "Name of the trial.", text(1, kLongestName).needed());
  v.field("step", c.step, "Step of the checkpoint.", count_from(0));
}

template <class Visitor, Like<Stop> T>
void visit_fields(Visitor& v, T& c) {
  v.field("reason", c.reason, "Reason in one word, for programs.", message_text(256));
  v.field("message", c.message, "Explanation, for people.", message_text(kLongestMessage));
  v.field("basis", c.basis, "Highest seq of a fact that was known when this was decided.",
          count_from(0));
}

template <class Visitor, Like<Sizing> T>
void visit_fields(Visitor& v, T& c) {
  v.field("time", c.at_ms, "Time at which the number of workers was decided.", timestamp());
  v.field("workers", c.workers, "Number of workers that was decided on.", whole(1, 1024));
  v.field("noRoomAfter", c.no_room_after,
          "Number of the Study's trials that had ended when no room was found for more workers.",
          count_from(0));
}

template <class Visitor, Like<TrialSpec> T>
void visit_fields(Visitor& v, T& c) {
  v.field("study", c.study, "Name of the Study that the trial belongs to.", dns_label().needed());
  v.field("index", c.index, "Index of the trial in its Study, counted from 0.",
          whole(0, kMaxTrialIndex));
  v.field("parameters", c.parameters, "Values of the active parameters.",
          FieldRules{}.as(Form::kObject));
  v.field("seed", c.seed, "Seed of the trainer.");
  v.field("untilStep", c.until_step, "Step that the trial should reach. It never decreases.",
          count_from(0));
  v.field("workers", c.workers, "Number of workers that the trial should have now.",
          whole(1, 1024));
  v.field("sizing", c.sizing, "What the elastic policy last decided about the workers.");
  v.field("gpuMemory", c.gpu_memory, "GPU memory for each worker, where the Study says auto.",
          above(0, 1e15).as(Form::kQuantity));
  v.field("parent", c.parent, "Checkpoint of another trial that this one starts from.");
  v.field("search", c.search, "Decision that created the trial.");
  v.field("stop", c.stop, "Decision to stop the trial early.");
  v.field("suspend", c.suspend,
          "Whether the trial should stop at a checkpoint until it is resumed.");
}

template <class Visitor, Like<Resize> T>
void visit_fields(Visitor& v, T& c) {
  v.field("time", c.at_ms, "Time of the change.", timestamp());
  v.field("workers", c.workers, "Number of workers from then on. 0: the run waits.",
          whole(0, 1024));
}

template <class Visitor, Like<RunRecord> T>
void visit_fields(Visitor& v, T& c) {
  v.field("run", c.run, "Number of the run in its trial, counted from 0.", count_from(0));
  v.field(
      "podUID", c.pod_uid,
      "UID of the pod of rank 0. In a local run: UID of the trial, -r and the number of the run.",
      text(0, 64));
  v.field("workers", c.workers, "Number of workers that the run was started with.", whole(0, 1024));
  v.field("gpus", c.gpus, "Number of GPUs of each worker. Left out: as the Study says.",
          number(0, 1024));
  v.field("gpuMemory", c.gpu_memory, "GPU memory that each worker requested.",
          above(0, 1e15).as(Form::kQuantity));
  v.field("gpuMemoryShort", c.gpu_memory_short,
          "Least GPU memory that a run which ran out of it would have needed. 0: not known.",
          number(0, 1e15).as(Form::kQuantity));
  v.field("resizes", c.resizes, "Changes of the number of workers, in order.",
          list(0, kMaxResizes));
  v.field("untilStep", c.until_step, "Step that the run was asked to reach.", count_from(0));
  v.field("startTime", c.started_ms, "Time at which the run was recorded, before it was started.",
          timestamp());
  v.field("runningTime", c.running_ms, "Time at which the run was first seen running.",
          timestamp());
  v.field("unplacedTime", c.unplaced_ms,
          "Time since which some workers of an elastic trial have found no node.", timestamp());
  v.field("endTime", c.ended_ms, "Time at which the run had ended.", timestamp());
  v.field("lastStep", c.last_step, "Newest step of the trial when the run ended.", count_from(0));
  v.field("failures", c.failures, "Number of earlier runs whose failure the trial itself caused.",
          count_from(0));
  v.field("earlierSeconds", c.earlier_seconds, "Worker-seconds of all earlier runs.",
          number(0, kLargestBound));
  v.field("earlierGPUSeconds", c.earlier_gpu_seconds,
          "GPU-seconds of all earlier runs. Left out: worker-seconds times the GPUs of a worker.",
          number(0, kLargestBound));
  v.field("stopping", c.stopping,
          "Why Fettle asked the run to stop, as the outcome that it leads to.");
  v.field("outcome", c.outcome, "Outcome of the run.");
  v.field("reason", c.reason,
          "Reason in one word, for programs. Preempted: the queue took back the nodes. Presumed: "
          "only the exit code says that it was disrupted.",
          message_text(64));
  v.field("message", c.message, "Explanation, for people.", message_text(kLongestMessage));
}

template <class Visitor, Like<Fact> T>
void visit_fields(Visitor& v, T& c) {
  v.field("seq", c.seq, "Number of the fact in its Study, counted from 1.", count_from(1));
  v.field("kind", c.kind, "Kind of the fact: Rung, Result, Stopped or Failed.",
          FieldRules{}.needed());
  v.field("step", c.step, "Step at which the values were measured.", count_from(0));
  v.field("values", c.values, "Value of each objective; null if it is missing or not finite.",
          list(0, kMostObjectives));
  v.field("infeasible", c.infeasible, "Whether a value is not finite or a constraint is violated.");
  v.field("time", c.at_ms, "Time at which the fact was recorded.", timestamp());
  v.field("cost", c.cost,
          "With algorithm.costAware: GPU-seconds used by the end of the trial, or worker-seconds "
          "without GPUs.",
          number(0, kLargestBound));
}

template <class Visitor, Like<HistoryPoint> T>
void visit_fields(Visitor& v, T& c) {
  v.field("step", c.step, "Number of steps done.", count_from(0));
  v.field("metrics", c.metrics, "Metrics at that step.", metric_values());
}

template <class Visitor, Like<Report> T>
void visit_fields(Visitor& v, T& c) {
  v.field("step", c.step, "Number of steps done.", count_from(0));
  v.field("metrics", c.metrics, "Newest value of each metric.", metric_values());
  v.field("checkpoint", c.checkpoint, "Name of the newest durable checkpoint.",
          text(0, kLongestCheckpointName));
  v.field("checkpointStep", c.checkpoint_step, "Step of that checkpoint.", count_from(0));
  v.field("final", c.final_result, "Whether the trainer has reached untilStep.");
  v.field("time", c.at_ms, "Time at which the report was made.", timestamp());
  v.field("objective", c.objective, "Newest objective values. For display.", message_text(256));
  v.field("throughput", c.throughput, "Images or tokens per second. For display.",
          message_text(64));
  v.field("waiting", c.waiting,
          "What keeps the program from training, such as workers that have not come. Absent: "
          "nothing.",
          message_text(kLongestWaiting));
  v.field("history", c.history, "Learning curve, with some points left out if it is long.",
          list(0, kMaxHistoryPoints));
}

template <class Visitor, Like<TrialStatus> T>
void visit_fields(Visitor& v, T& c) {
  v.field("phase", c.phase, "Phase of the trial.");
  v.field("conditions", c.conditions, "Conditions: Complete, Failed.", list(0, 16));
  v.field("runs", c.runs, "Newest runs of the trial.", list(0, kMaxRunRecords));
  v.field("facts", c.facts, "Facts that were learnt about the trial, in order.",
          list(0, kMostFacts));
  v.field("report", c.report, "Newest report of the training.");
  v.field("gpus", c.gpus, "Number of GPUs of all workers. For display.", message_text(64));
}

template <class Visitor, Like<Trial> T>
void visit_fields(Visitor& v, T& c) {
  v.constant("apiVersion", kApiVersion);
  v.constant("kind", "Trial");
  v.field("metadata", c.metadata, "Metadata of the Trial.", FieldRules{}.needed());
  v.field("spec", c.spec, "What to run, written by the operator.", FieldRules{}.needed());
  v.field("status", c.status, "State of the object, written by Fettle.");
}

}  // namespace fettle::api
