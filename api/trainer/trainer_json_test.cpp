// The trainer's configuration: reading, `sets`, resolving, and the changes that a Study allows.
#include "api/trainer/trainer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/study/changes.h"
#include "api/study/resolve.h"
#include "api/trial/trial_file.h"

namespace fettle::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainerConfig small_config() {
  const Result<TrainerConfig> config = read_trainer_config(*parse_json(
      R"({"data": {"trainImages": "a", "trainLabels": "b"},
          "model": {"layers": [{"type": "conv", "channels": 8}, {"type": "linear", "units": 10}]}})"));
  CHECK(config.ok(), config.error().message);
  return *config;
}

Parameter parameter(const char* name, ParameterType type, double min, double max,
                    const char* sets) {
  Parameter out;
  out.name = name;
  out.type = type;
  out.min = min;
  out.max = max;
  out.sets = sets;
  return out;
}

StudySpec small_spec() {
  StudySpec spec;
  spec.objectives = {{"validation_accuracy", Direction::kMaximize, {}, Take::kLast}};
  spec.resource.max = 9;
  spec.parameters = {parameter("rate", ParameterType::kDouble, 0.1, 1, "training.learningRate"),
                     parameter("units", ParameterType::kInteger, 8, 64, "model.layers[1].units")};
  spec.trial.trainer = small_config();
  return spec;
}

TEST(TrainerJson, WritingAndReadingPreserveTheDocument) {
  TrainerConfig config = small_config();
  config.data.normalize = NormalizeConfig{0.5, 0.25};
  config.model.layers[0].bias = false;
  config.training.batch_per_worker = 32;
  config.training.optimizer = OptimizerKind::kAdamW;
  config.training.clip_norm = 1.5;
  const Result<TrainerConfig> read = read_trainer_config(write_trainer_config(config));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, config);
}

TEST(SetTrainerField, WritesTheFieldThatThePathNames) {
  TrainerConfig config = small_config();
  ASSERT_TRUE(set_trainer_field(config, "training.learningRate", 0.5).ok());
  ASSERT_TRUE(set_trainer_field(config, "training.optimizer", "rmsprop").ok());
  ASSERT_TRUE(set_trainer_field(config, "model.layers[0].channels", 32.0).ok());
  ASSERT_TRUE(set_trainer_field(config, "data.normalize.mean", 0.25).ok());
  EXPECT_EQ(config.training.learning_rate, 0.5);
  EXPECT_EQ(config.training.optimizer, OptimizerKind::kRmsprop);
  EXPECT_EQ(config.model.layers[0].channels, 32);
  EXPECT_EQ(config.data.normalize->mean, 0.25);
}

TEST(SetTrainerField, RefusesValuesThatReadingRefuses) {
  TrainerConfig config = small_config();
  const TrainerConfig before = config;
  for (const char* path : {"", "training", "model.layers", "model.layers[9].units", "nonsense",
                           "model.layers[-1].units", "model.layers[0", "training.learningRate.x",
                           "training..learningRate", "model.layers[1].channels"}) {
    EXPECT_FALSE(set_trainer_field(config, path, 1).ok()) << path;
  }
  EXPECT_FALSE(set_trainer_field(config, "training.threads", 1.5).ok());
  EXPECT_FALSE(set_trainer_field(config, "training.threads", "1").ok());
  EXPECT_EQ(config, before);
}

std::string read_training(const char* training) {
  const std::string text =
      R"({"data": {"trainImages": "a", "trainLabels": "b"},
          "model": {"layers": [{"type": "linear", "units": 4}]}, "training": )" +
      std::string(training) + "}";
  const auto config = read_trainer_config(*parse_json(text));
  return config.ok() ? write_trainer_config(*config).dump() : config.error().message;
}

TEST(TrainerJson, ReadsDistillationWithItsDefaults) {
  EXPECT_THAT(read_training(R"({"distill": {"teacher": "t"}})"),
              HasSubstr(R"("distill":{"teacher":"t","temperature":4,"weight":0.7})"));
  EXPECT_THAT(read_training(R"({"distill": {"weight": 0.5}})"), HasSubstr("distill.teacher"));
  EXPECT_THAT(read_training(R"({"distill": {"teacher": "t", "weight": 1.5}})"),
              HasSubstr("distill.weight"));
  EXPECT_THAT(read_training(R"({"distill": {"teacher": "t", "temperature": 0}})"),
              HasSubstr("distill.temperature"));
}

TEST(TrainerJson, ReadsPruningOfEachPattern) {
  EXPECT_THAT(read_training(R"({"prune": {"sparsity": 0.9}})"),
              HasSubstr(R"("pattern":"unstructured","sparsity":0.9,"begin":0.1,"end":0.7})"));
  EXPECT_THAT(read_training(R"({"prune": {"pattern": "2:4"}})"), HasSubstr(R"("pattern":"2:4")"));
  EXPECT_THAT(read_training(R"({"prune": {}})"), HasSubstr("prune.sparsity"));
  EXPECT_THAT(read_training(R"({"prune": {"sparsity": 1}})"), HasSubstr("prune.sparsity"));
  EXPECT_THAT(read_training(R"({"prune": {"pattern": "2:4", "sparsity": 0.5}})"),
              HasSubstr("pattern unstructured"));
  EXPECT_THAT(read_training(R"({"prune": {"sparsity": 0.5, "begin": 0.8}})"),
              HasSubstr("training.prune.end: found less than begin"));
}

TEST(SetTrainerField, ReachesDistillationAndPruning) {
  TrainerConfig config = small_config();
  config.training.distill = DistillConfig{.teacher = "t"};
  config.training.prune = PruneConfig{.sparsity = 0.5};
  EXPECT_TRUE(set_trainer_field(config, "training.distill.temperature", Json(2)).ok());
  EXPECT_TRUE(set_trainer_field(config, "training.distill.teacher", Json("u")).ok());
  EXPECT_TRUE(set_trainer_field(config, "training.prune.sparsity", Json(0.75)).ok());
  EXPECT_EQ(config.training.distill->temperature, 2);
  EXPECT_EQ(config.training.distill->teacher, "u");
  EXPECT_EQ(config.training.prune->sparsity, 0.75);
}

TEST(ResolveTrainer, WritesParametersAndFillsInDefaults) {
  const Result<TrainerConfig> config =
      resolve_trainer(small_spec(), Json::object({{"rate", 0.25}, {"units", 16}}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->training.learning_rate, 0.25);
  EXPECT_EQ(config->model.layers[1].units, 16);
  EXPECT_EQ(config->training.epochs, 9);
  EXPECT_EQ(config->training.global_batch, 128);
  EXPECT_EQ(config->training.reference_batch, 128);
}

TEST(ResolveTrainer, KeepsBatchPerWorker) {
  StudySpec spec = small_spec();
  spec.trial.trainer->training.batch_per_worker = 32;
  const Result<TrainerConfig> config = resolve_trainer(spec, Json::object());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->training.global_batch, std::nullopt);
  EXPECT_EQ(config->training.reference_batch, 32);
}

TEST(ResolveTrainer, NamesTheParameterThatDoesNotFit) {
  const auto config = resolve_trainer(small_spec(), Json::object({{"rate", -1}}));
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("parameter rate: training.learningRate: found -1"));
}

TEST(ForbiddenChanges, BudgetGoalAndPatienceMayChange) {
  StudySpec after = small_spec();
  after.budget.trials = 99;
  after.budget.wall_time = 60;
  after.suspend = true;
  after.objectives[0].goal = 0.9;
  after.trial.timeout = 60;
  after.trial.heartbeat = 60;
  after.trial.retries = 0;
  after.trial.grace_period = 5;
  EXPECT_THAT(forbidden_changes(small_spec(), after), ElementsAre());
}

TEST(ForbiddenChanges, TrialsMoveToAnotherQueueButNotIntoOneOrOut) {
  StudySpec before = small_spec();
  before.trial.queue = "team";
  StudySpec after = before;
  after.trial.queue = "other";
  after.trial.queue_priority = "high";
  EXPECT_THAT(forbidden_changes(before, after), ElementsAre());
  const std::vector<FieldError> errors = forbidden_changes(small_spec(), after);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "spec.trial.queue");
}

TEST(ForbiddenChanges, EverythingElseIsNamed) {
  StudySpec after = small_spec();
  after.parameters[1].max = 128;
  after.algorithm.name = api::AlgorithmKind::kGp;
  after.trial.trainer->training.precision = Precision::kBf16;
  after.trial.gpu = Gpu{1, {}, {}};
  after.trial.pod.emplace().runtime_class = "nvidia";
  const std::vector<FieldError> errors = forbidden_changes(small_spec(), after);
  std::vector<std::string> paths;
  for (const FieldError& error : errors) paths.push_back(error.path);
  EXPECT_THAT(paths, ElementsAre("spec.parameters[1].max", "spec.algorithm.name",
                                 "spec.trial.trainer.training.precision", "spec.trial.gpu",
                                 "spec.trial.pod"));
  EXPECT_THAT(errors[0].message, HasSubstr("was 64, now 128"));
}

TEST(TrialFile, WritingAndReadingPreserveTheDocument) {
  TrialFile file;
  file.study = "digits";
  file.study_uid = "u";
  file.trial = "digits-3";
  file.index = 3;
  file.parameters = Json::object({{"rate", 0.5}});
  file.until_step = 9;
  file.resource = {"epoch", 1, 9};
  file.rungs = {1, 3};
  file.objectives = {{"loss", Direction::kMinimize}};
  file.parallelism = 40;
  file.grace_period = 12.5;
  file.checkpoints = {"/tmp/c", 2, 3};
  file.parent = ParentPlace{"/tmp/p", 4};
  file.trainer = small_config();
  const Result<TrialFile> read = read_trial_file(*parse_json(write_trial_file(file).dump()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, file);
}

}  // namespace
}  // namespace fettle::api
