#include "tests/matrix/calls/study_shapes.h"

namespace fettle::matrix {
namespace {

std::string document(const std::string& name, const std::string& spec) {
  return "apiVersion: fettle.dev/v1alpha1\nkind: Study\nmetadata: {name: " + name +
         ", namespace: team}\nspec:\n"
         "  objectives: [{metric: loss, direction: Minimize}]\n" +
         spec + "---\n";
}

constexpr const char* kRate = "  parameters: [{name: rate, type: Double, min: 0.1, max: 1}]\n";
constexpr const char* kTrainerRate =
    "  parameters: [{name: rate, type: Double, min: 0.1, max: 1, sets: training.learningRate}]\n";
constexpr const char* kImage =
    "    template: {spec: {containers: [{name: trainer, image: mine}]}}\n";
constexpr const char* kTrainer =
    "    trainer:\n"
    "      data: {trainImages: /data/images.gz, trainLabels: /data/labels.gz}\n"
    "      model: {layers: [{type: flatten}, {type: linear, units: 10}]}\n";

// An image with metrics read from its log, and checkpoints on a claim.
StudyShape image() {
  return {
      .name = "image",
      .yaml = document("image", std::string("  algorithm: {name: random}\n"
                                            "  budget: {trials: 4, parallelism: 2}\n"
                                            "  resource: {max: 4}\n") +
                                    kRate +
                                    "  trial:\n"
                                    "    checkpoints: {size: 1Gi, accessMode: ReadWriteMany}\n" +
                                    kImage),
      .script = {.prints = true}};
}

// The built-in trainer with early stopping, on shares of GPUs; an answer is lost, and results
// arrive only in the last words.
StudyShape trainer() {
  return {.name = "trainer",
          .yaml = document("trainer",
                           std::string("  algorithm: {name: random}\n"
                                       "  budget: {trials: 5, parallelism: 1}\n"
                                       "  resource: {min: 1, max: 9}\n"
                                       "  earlyStopping: {name: asha, reductionFactor: 3}\n") +
                               kTrainerRate + "  trial:\n    gpu: {memory: 20Gi}\n" + kTrainer),
          .script = {.ends_unheard = true},
          .gpu_profiles = {"dra-memory"},
          .loses_answers = true};
}

// Two workers each, as a group of Volcano; one worker is lost.
StudyShape gang() {
  return {.name = "gang",
          .yaml = document("gang", std::string("  algorithm: {name: sobol}\n"
                                               "  budget: {trials: 3, parallelism: 2}\n"
                                               "  resource: {max: 4}\n") +
                                       kTrainerRate +
                                       "  trial:\n    gang: volcano\n"
                                       "    workers: {min: 2, max: 2}\n" +
                                       kTrainer),
          .script = {.loses_worker_of = "gang-1-r0"}};
}

// The same as a group of another scheduler; gang() has the other rows.
StudyShape grouped(const std::string& scheduler) {
  return {.name = scheduler,
          .yaml = document(scheduler, std::string("  algorithm: {name: random}\n"
                                                  "  budget: {trials: 2, parallelism: 1}\n"
                                                  "  resource: {max: 2}\n") +
                                          kTrainerRate + "  trial:\n    gang: " + scheduler + "\n" +
                                          (scheduler == "kai" ? "    queue: team\n" : "") +
                                          "    workers: {min: 2, max: 2}\n" + kTrainer),
          .script = {},
          .only = "podgroups"};
}

// Promotions from rung to rung, each a new run.
StudyShape rungs() {
  return {.name = "rungs",
          .yaml = document("rungs", std::string("  algorithm: {name: random}\n"
                                                "  budget: {trials: 4, parallelism: 1}\n"
                                                "  resource: {min: 1, max: 9}\n"
                                                "  earlyStopping: {name: asha, reductionFactor: 3, "
                                                "promote: true}\n") +
                                        kRate +
                                        "  trial:\n    checkpoints: {claim: work}\n"
                                        "    gpu: {fraction: 0.25}\n" +
                                        kImage),
          .script = {.prints = true},
          .gpu_profiles = {"dra-mps"}};
}

// Learns from an earlier Study, ends by its goal, and is deleted after its time to live.
StudyShape warm() {
  const std::string earlier =
      document("pilot", std::string("  algorithm: {name: random}\n  budget: {trials: 2}\n"
                                    "  resource: {max: 2}\n") +
                            kRate + "  trial:\n" + kImage);
  return {.name = "warm",
          .yaml = earlier + document("warm", std::string("  algorithm: {name: random}\n"
                                                         "  budget: {trials: 3, parallelism: 3}\n"
                                                         "  resource: {max: 4}\n"
                                                         "  warmStart: {studies: [pilot]}\n"
                                                         "  ttlAfterFinished: 2m\n") +
                                                 kRate + "  trial:\n" + kImage),
          .script = {.prints = true}};
}

// In a queue of Kueue, suspended by its user for a while.
StudyShape queued() {
  return {.name = "queued",
          .yaml = document("queued", std::string("  algorithm: {name: random}\n"
                                                 "  budget: {trials: 3, parallelism: 2}\n"
                                                 "  resource: {max: 6}\n") +
                                         kTrainerRate + "  trial:\n    queue: team\n" + kTrainer),
          .script = {},
          .is_suspended = true};
}

// Suspended by its user for a while, without a queue.
StudyShape paused() {
  return {.name = "paused",
          .yaml = document("paused", std::string("  algorithm: {name: random}\n"
                                                 "  budget: {trials: 3, parallelism: 2}\n"
                                                 "  resource: {max: 6}\n") +
                                         kRate +
                                         "  trial:\n    workers: {min: 2, max: 2}\n"
                                         "    checkpoints: {claim: work}\n" +
                                         kImage),
          .script = {.prints = true},
          .is_suspended = true};
}

// Grows its trials while there are free GPUs.
StudyShape elastic() {
  return {.name = "elastic",
          .yaml = document("elastic", std::string("  algorithm: {name: random}\n"
                                                  "  budget: {trials: 2, parallelism: 1}\n"
                                                  "  resource: {max: 30}\n") +
                                          kTrainerRate +
                                          "  trial:\n    workers: {min: 1, max: 2}\n" + kTrainer),
          .script = {}};
}

// Deleted in the middle, its trials kept; beside it, a Study and a Trial cannot be read.
StudyShape orphaned() {
  return {.name = "orphaned",
          .yaml = document("orphaned", std::string("  algorithm: {name: random}\n"
                                                   "  budget: {trials: 4, parallelism: 2}\n"
                                                   "  resource: {max: 6}\n") +
                                           kRate + "  trial:\n" + kImage),
          .script = {.prints = true},
          .loses_study = true,
          .has_unreadable = true};
}

}  // namespace

const std::vector<StudyShape>& study_shapes() {
  static const std::vector<StudyShape> kShapes{
      image(),        trainer(), gang(), grouped("native"), grouped("coscheduling"),
      grouped("kai"), rungs(),   warm(), queued(),          paused(),
      elastic(),      orphaned()};
  return kShapes;
}

}  // namespace fettle::matrix
