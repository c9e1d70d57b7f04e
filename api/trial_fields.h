// The fields of a Trial document (trial.h), for reading and writing. See field.h.
#pragma once

#include "api/field.h"
#include "api/names.h"
#include "api/report.h"
#include "api/study_fields.h"
#include "api/trial.h"

namespace fettle::api {

inline constexpr std::size_t kMostFacts = 100'000;

inline FieldRules count_from(std::int64_t min) { return whole(min, kLargestWhole); }
inline FieldRules metric_values() {
  return list(0, kMaxReportMetrics).as(Form::kAnyNumber).of_text(kLongestMetricName);
}

template <class Visitor, Like<TrialPromotion> T>
void visit_fields(Visitor& v, T& c) {
  v.field("basis", c.basis, "Highest seq that the decision saw.", count_from(0));
  v.field("untilStep", c.until_step, "Step it was sent to.", count_from(0));
}

template <class Visitor, Like<SearchOrigin> T>
void visit_fields(Visitor& v, T& c) {
  v.field("basis", c.basis, "Highest seq that the decision saw.", count_from(0));
  v.field("bracket", c.bracket, "The rung it began at, from 0.", count_from(0));
  v.field("rung", c.rung, "The rung it was last sent to.", count_from(0));
  v.field("promotions", c.promotions, "Decisions that it goes on from a rung.",
          list(0, kMaxPromotions));
  v.field("replaces", c.replaces, "The trial whose place it took in a population.",
          text(0, kLongestName));
}

template <class Visitor, Like<Parent> T>
void visit_fields(Visitor& v, T& c) {
  v.field("trial", c.trial, "The name of the trial.", text(1, kLongestName).needed());
  v.field("step", c.step, "Of its checkpoint.", count_from(0));
}

template <class Visitor, Like<Stop> T>
void visit_fields(Visitor& v, T& c) {
  v.field("reason", c.reason, "For machines.", message_text(256));
  v.field("message", c.message, "For people.", message_text(kLongestMessage));
  v.field("basis", c.basis, "Highest seq that the decision saw.", count_from(0));
}

template <class Visitor, Like<Sizing> T>
void visit_fields(Visitor& v, T& c) {
  v.field("time", c.at_ms, "When the number of workers was decided.", timestamp());
  v.field("workers", c.workers, "The number that was decided.", whole(1, 1024));
  v.field("noRoomAfter", c.no_room_after,
          "Trials of the Study that had ended when no place was found for more workers.",
          count_from(0));
}

template <class Visitor, Like<TrialSpec> T>
void visit_fields(Visitor& v, T& c) {
  v.field("study", c.study, "The name of its Study.", dns_label().needed());
  v.field("index", c.index, "0, 1, 2 ... within the Study.", whole(0, kMaxTrialIndex));
  v.field("parameters", c.parameters, "Values of the active parameters.",
          FieldRules{}.as(Form::kObject));
  v.field("seed", c.seed, "The trainer's seed.");
  v.field("untilStep", c.until_step, "Step to reach; only grows.", count_from(0));
  v.field("workers", c.workers, "Workers now wanted.", whole(1, 1024));
  v.field("sizing", c.sizing, "What the elastic policy last decided about workers.");
  v.field("gpuMemory", c.gpu_memory, "Memory of a GPU of each worker; where the Study says auto.",
          above(0, 1e15).as(Form::kQuantity));
  v.field("workerPod", c.worker_pod, "Pool: the worker that has it.", text(0, 253));
  v.field("parent", c.parent, "Checkpoint to start from.");
  v.field("search", c.search, "The decision that created it.");
  v.field("stop", c.stop, "The decision to end it early.");
  v.field("suspend", c.suspend, "Stop gently, and go on later.");
}

template <class Visitor, Like<Resize> T>
void visit_fields(Visitor& v, T& c) {
  v.field("time", c.at_ms, "From then on.", timestamp());
  v.field("workers", c.workers, "That many workers run; 0: none, the run waits.", whole(0, 1024));
}

template <class Visitor, Like<RunRecord> T>
void visit_fields(Visitor& v, T& c) {
  v.field("run", c.run, "0, 1, 2 ... within the trial.", count_from(0));
  v.field("podUID", c.pod_uid, "Of rank 0; local: UID of the trial, -r and the run.", text(0, 64));
  v.field("workers", c.workers, "Workers it was started with.", whole(0, 1024));
  v.field("gpus", c.gpus, "GPUs of each worker; left out: as the Study says.", number(0, 1024));
  v.field("gpuMemory", c.gpu_memory, "Memory of a GPU that each worker asked for.",
          above(0, 1e15).as(Form::kQuantity));
  v.field("gpuMemoryShort", c.gpu_memory_short,
          "It had too little memory of its GPU, and needs this at least; 0: it does not say.",
          number(0, 1e15).as(Form::kQuantity));
  v.field("resizes", c.resizes, "Changes of the number of workers, in order.",
          list(0, kMaxResizes));
  v.field("untilStep", c.until_step, "How far it was asked to go.", count_from(0));
  v.field("startTime", c.started_ms, "When the intent was written.", timestamp());
  v.field("runningTime", c.running_ms, "When it was first seen running.", timestamp());
  v.field("unplacedTime", c.unplaced_ms,
          "Since when some of its workers have found no place; of elastic trials.", timestamp());
  v.field("endTime", c.ended_ms, "When it had ended.", timestamp());
  v.field("lastStep", c.last_step, "The trial's newest step when the run ended.", count_from(0));
  v.field("failures", c.failures, "Earlier runs that failed by the trial's own fault.",
          count_from(0));
  v.field("earlierSeconds", c.earlier_seconds, "Worker-seconds of all earlier runs.",
          number(0, kLargestBound));
  v.field("earlierGPUSeconds", c.earlier_gpu_seconds,
          "GPU-seconds of all earlier runs; left out: worker-seconds times the GPUs of a worker.",
          number(0, kLargestBound));
  v.field("stopping", c.stopping, "Why it was asked to stop.");
  v.field("outcome", c.outcome, "How it ended.");
  v.field("reason", c.reason, "For machines. Preempted: its queue took its nodes back.",
          message_text(64));
  v.field("message", c.message, "For people.", message_text(kLongestMessage));
}

template <class Visitor, Like<Fact> T>
void visit_fields(Visitor& v, T& c) {
  v.field("seq", c.seq, "1, 2, 3 ... within the Study.", count_from(1));
  v.field("kind", c.kind, "Rung, Result, Stopped or Failed.", FieldRules{}.needed());
  v.field("step", c.step, "Step of the values.", count_from(0));
  v.field("values", c.values, "One an objective; null: not finite or missing.",
          list(0, kMostObjectives));
  v.field("infeasible", c.infeasible, "Not finite or outside a constraint.");
  v.field("time", c.at_ms, "When it was recorded.", timestamp());
  v.field("cost", c.cost, "GPU-seconds by its end, or worker-seconds; under algorithm.costAware.",
          number(0, kLargestBound));
}

template <class Visitor, Like<HistoryPoint> T>
void visit_fields(Visitor& v, T& c) {
  v.field("step", c.step, "Steps done.", count_from(0));
  v.field("metrics", c.metrics, "Values at that step.", metric_values());
}

template <class Visitor, Like<Report> T>
void visit_fields(Visitor& v, T& c) {
  v.field("step", c.step, "Steps done.", count_from(0));
  v.field("metrics", c.metrics, "Newest values.", metric_values());
  v.field("checkpoint", c.checkpoint, "Newest durable checkpoint.",
          text(0, kLongestCheckpointName));
  v.field("checkpointStep", c.checkpoint_step, "Its step.", count_from(0));
  v.field("final", c.final_result, "The trainer says that it reached untilStep.");
  v.field("time", c.at_ms, "When it was made.", timestamp());
  v.field("objective", c.objective, "For display: the newest objective values.", message_text(256));
  v.field("throughput", c.throughput, "For display: images or tokens per second.",
          message_text(64));
  v.field("history", c.history, "The learning curve, thinned.", list(0, kMaxHistoryPoints));
}

template <class Visitor, Like<TrialStatus> T>
void visit_fields(Visitor& v, T& c) {
  v.field("phase", c.phase, "Where it is.");
  v.field("conditions", c.conditions, "Complete, Failed.", list(0, 16));
  v.field("runs", c.runs, "The newest runs.", list(0, kMaxRunRecords));
  v.field("facts", c.facts, "What was learnt, in order.", list(0, kMostFacts));
  v.field("report", c.report, "What the training last said of itself.");
  v.field("gpus", c.gpus, "For display: GPUs of all workers.", message_text(64));
}

template <class Visitor, Like<Trial> T>
void visit_fields(Visitor& v, T& c) {
  v.constant("apiVersion", kApiVersion);
  v.constant("kind", "Trial");
  v.field("metadata", c.metadata, "The name of the Trial.", FieldRules{}.needed());
  v.field("spec", c.spec, "What to run.", FieldRules{}.needed());
  v.field("status", c.status, "What came of it.");
}

}  // namespace fettle::api
