// fettle-trainer --worker as its runner sees it: assignments in, frames out, and the same bits as
// in a process of its own for each trial.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/trial/trial_file.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/worker_process.h"

namespace fettle::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kForever = 1'000'000;  // epochs

class WorkerTest : public testing::Test {
 protected:
  WorkerTest()
      : data_(write_synthetic(directory_, 240)), other_data_(write_synthetic(other_, 320)) {
    const std::string cuda = program_path("../tests/emulated/libfettle_cuda.so");
    setenv("FETTLE_CUDA_LIBRARY", cuda.c_str(), 1);
  }
  ~WorkerTest() override { unsetenv("FETTLE_CUDA_LIBRARY"); }

  api::TrialFile trial(const std::string& name, api::BackendKind backend) const {
    api::TrialFile file;
    file.study = "s";
    file.study_uid = "u";
    file.trial = name;
    file.until_step = 2;
    file.resource.max = 2;
    file.seed = 7;
    file.objectives = {{"validation_accuracy", api::Direction::kMaximize}};
    file.checkpoints.directory = directory_.file("checkpoints-" + name);
    file.trainer.emplace();
    file.trainer->data = data_;
    file.trainer->training.backend = backend;
    file.trainer->training.global_batch = 24;
    file.trainer->training.epochs = 2;
    api::LayerConfig wide = linear(16);
    wide.deviation = 0.1;
    api::LayerConfig gelu = simple(api::LayerType::kGelu);
    gelu.approximate = api::GeluApproximation::kNone;
    file.trainer->model.layers = {wide, gelu, dropout(0.2), linear(4)};
    return file;
  }
  std::string write(const api::TrialFile& file) const {
    std::string path = directory_.file(file.trial + ".json");
    EXPECT_TRUE(write_file(path, api::write_trial_file(file).dump()).ok());
    return path;
  }
  // The same trial in a process and a directory of its own; returns its last checkpoint.
  std::string alone(api::TrialFile file) const {
    file.trial += "-alone";
    file.checkpoints.directory += "-alone";
    const std::string path = write(file);
    const pid_t test = getpid();
    const pid_t child = fork();
    if (child == 0) become_trainer(test, path, directory_.file("out"), directory_.file("alone"));
    EXPECT_EQ(exit_code(child), 0) << written_to(directory_.file("alone"));
    return checkpoint(file);
  }
  // Weights, state, position and scores.
  static std::string checkpoint(const api::TrialFile& file) {
    const auto found = CheckpointStore(file.checkpoints.directory).newest();
    if (!found.ok() || found->path.empty()) return "there is none";
    return *read_file(found->path);
  }
  std::string err() const { return directory_.file("err"); }

  TemporaryDirectory directory_;
  TemporaryDirectory other_;
  api::DataConfig data_;
  api::DataConfig other_data_;
};

// ---- Bits --------------------------------------------------------------------------------------

class WorkerBitsTest : public WorkerTest, public testing::WithParamInterface<api::BackendKind> {};

TEST_P(WorkerBitsTest, TheSixthTrialIsThatOfAFreshProcess) {
  std::vector<api::TrialFile> trials;
  for (int i = 0; i < 6; ++i) trials.push_back(trial("t" + std::to_string(i), GetParam()));
  trials[0].trainer->model.layers[2].rate = 0.5;
  trials[1].trainer->model.layers[1].approximate = api::GeluApproximation::kTanh;
  trials[2].trainer->model.layers[0].deviation = 0.3;
  trials[2].trainer->training.learning_rate = 0.5;
  trials[3].trainer->data = other_data_;
  trials[3].trainer->training.threads = 2;
  trials[4].trainer->model.layers.erase(trials[4].trainer->model.layers.begin() + 2);
  WorkerProcess worker(1, err());
  for (const api::TrialFile& one : trials) {
    worker.assign(one.trial, write(one));
    ASSERT_TRUE(worker.await("@end " + one.trial + " 0")) << worker.err();
  }
  worker.close_assignments();
  EXPECT_EQ(worker.wait(), 0);
  const std::string sixth = checkpoint(trials[5]);
  EXPECT_TRUE(sixth == alone(trials[5]));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(sixth == checkpoint(trials[static_cast<std::size_t>(i)])) << i;
  }
  EXPECT_TRUE(checkpoint(trials[3]) == alone(trials[3])) << "with other data and threads";
}

INSTANTIATE_TEST_SUITE_P(Backends, WorkerBitsTest,
                         testing::Values(api::BackendKind::kReference, api::BackendKind::kOnednn,
                                         api::BackendKind::kCuda));

// Each slot has its own stream and memory, and may have any shape.
TEST_F(WorkerTest, FourSlotsGiveTheBitsOfTrialsAlone) {
  std::vector<api::TrialFile> trials;
  WorkerProcess worker(4, err());
  for (int i = 0; i < 24; ++i) {
    api::TrialFile one = trial("t" + std::to_string(i), api::BackendKind::kCuda);
    one.seed = i;
    one.trainer->model.layers[0].units = 4 + 3 * (i % 8);
    one.trainer->model.layers[2].rate = 0.05 * (1 + i % 3);
    one.trainer->training.learning_rate = 0.01 * (1 + i);
    if (i % 4 == 3) one.trainer->data = other_data_;
    trials.push_back(one);
  }
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (i >= 4) {
      ASSERT_TRUE(worker.await("@end " + trials[i - 4].trial + " 0")) << worker.err();
    }
    worker.assign(trials[i].trial, write(trials[i]));
  }
  worker.close_assignments();
  EXPECT_EQ(worker.wait(), 0) << worker.err();
  EXPECT_THAT(worker.frames("@refuse"), IsEmpty());
  EXPECT_EQ(worker.frames("@line t5 ").size(), 2U);
  for (const api::TrialFile& one : trials) {
    EXPECT_TRUE(checkpoint(one) == alone(one)) << one.trial;
  }
}

TEST_F(WorkerTest, TroubleInOneSlotIsNoneInTheOthers) {
  const auto named = [this](const char* name) { return trial(name, api::BackendKind::kReference); };
  api::TrialFile diverges = named("diverges");
  diverges.trainer->training.learning_rate = 1e6;
  diverges.trainer->training.momentum = 0.99;
  api::TrialFile stops = named("stops");
  stops.until_step = stops.resource.max = kForever;
  stops.trainer->training.epochs = kForever;
  api::TrialFile cannot = named("cannot");
  cannot.trainer->model.layers.back().units = 3;  // of four classes
  api::TrialFile fails = named("fails");
  ASSERT_TRUE(write_file(fails.checkpoints.directory, "a file").ok());
  const api::TrialFile good = named("good");
  WorkerProcess worker(4, err());
  for (const api::TrialFile& one : {stops, diverges, cannot, fails, good}) {
    worker.assign(one.trial, write(one));
  }
  ASSERT_TRUE(worker.await("@line stops "));
  for (const char* end : {"@end diverges 0", "@end cannot 2", "@end fails 1", "@end good 0"}) {
    EXPECT_TRUE(worker.await(end)) << worker.err();
  }
  EXPECT_THAT(worker.frames("@end stops"), IsEmpty());
  worker.stop("stops");
  EXPECT_TRUE(worker.await("@end stops 143"));
  worker.close_assignments();
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(worker.frames("@line diverges"), ElementsAre(HasSubstr("NaN")));
  EXPECT_THAT(worker.err(), HasSubstr("fettle-trainer: cannot: "));
  EXPECT_TRUE(checkpoint(good) == alone(good));
  for (const std::string& line : worker.frames("@line")) {
    EXPECT_THAT(line, testing::Not(HasSubstr("memory_mib"))) << "it is of all slots";
  }
}

// ---- One slot ----------------------------------------------------------------------------------

TEST_F(WorkerTest, LinesLieBetweenBeginAndEnd) {
  const api::TrialFile one = trial("one", api::BackendKind::kReference);
  WorkerProcess worker(1, err());
  worker.assign("one-r0", write(one));
  worker.close_assignments();
  EXPECT_EQ(worker.wait(), 0) << worker.err();
  EXPECT_THAT(worker.lines, ElementsAre("@ready 1 1", "@begin one-r0", HasSubstr("\"step\": 1,"),
                                        HasSubstr("\"final\": true"), "@end one-r0 0"));
  EXPECT_THAT(worker.lines[2], HasSubstr("\"memory_mib\": "));
}

// The errors and exit codes of a process; the worker lives on.
TEST_F(WorkerTest, AFailedTrialHarmsNoLaterOne) {
  api::TrialFile missing = trial("missing", api::BackendKind::kReference);
  missing.trainer->data.train_images += ".missing";
  api::TrialFile fails = trial("fails", api::BackendKind::kReference);
  ASSERT_TRUE(write_file(fails.checkpoints.directory, "a file").ok());
  const api::TrialFile good = trial("good", api::BackendKind::kReference);
  WorkerProcess worker(1, err());
  worker.assign("no-file", directory_.file("nothing.json"));
  ASSERT_TRUE(worker.await("@end no-file 2"));
  worker.assign("missing", write(missing));
  ASSERT_TRUE(worker.await("@end missing 2"));
  worker.assign("fails", write(fails));
  ASSERT_TRUE(worker.await("@end fails 1"));
  worker.assign("good", write(good));
  ASSERT_TRUE(worker.await("@end good 0"));
  EXPECT_THAT(worker.err(),
              HasSubstr("fettle-trainer: cannot open " + missing.trainer->data.train_images));
  EXPECT_TRUE(checkpoint(good) == alone(good));
}

TEST_F(WorkerTest, DataFilesThatChangedAreReadAgain) {
  const api::TrialFile before = trial("before", api::BackendKind::kReference);
  const api::TrialFile after = trial("after", api::BackendKind::kReference);
  WorkerProcess worker(1, err());
  worker.assign("before", write(before));
  ASSERT_TRUE(worker.await("@end before 0")) << worker.err();
  const SyntheticImages images(240, /*seed=*/9);
  const std::string fresh = directory_.file("fresh");
  ASSERT_TRUE(write_file(fresh, idx({240, 8, 8}, images.pixels)).ok());
  std::filesystem::rename(fresh, data_.train_images);
  worker.assign("after", write(after));
  ASSERT_TRUE(worker.await("@end after 0")) << worker.err();
  EXPECT_FALSE(checkpoint(before) == checkpoint(after));
  EXPECT_TRUE(checkpoint(after) == alone(after));
}

// ---- Stops and ends ----------------------------------------------------------------------------

class LongWorkerTest : public WorkerTest {
 protected:
  std::string endless(const std::string& name) const {
    api::TrialFile file = trial(name, api::BackendKind::kReference);
    file.until_step = file.resource.max = kForever;
    file.trainer->training.epochs = kForever;
    return write(file);
  }
};

TEST_F(LongWorkerTest, AStoppedRunSavesAndTheNextFollows) {
  WorkerProcess worker(1, err());
  worker.assign("a", endless("a"));
  ASSERT_TRUE(worker.await("{\"step\": 2"));
  worker.assign("b", endless("b"));
  worker.stop("b");
  worker.stop("nobody");
  worker.stop("a");
  ASSERT_TRUE(worker.await("@end b 143")) << worker.err();
  EXPECT_THAT(worker.frames(),
              ElementsAre("@ready 1 1", "@begin a", "@end a 143", "@begin b", "@end b 143"));
  EXPECT_FALSE(std::filesystem::exists(directory_.file("checkpoints-b"))) << "it never trained";
  EXPECT_THAT(worker.lines[worker.lines.size() - 4], HasSubstr("\"checkpoint\": "));
}

TEST_F(LongWorkerTest, WithSeveralSlotsAStopDoesNotWaitForOne) {
  WorkerProcess worker(2, err());
  for (const char* run : {"a", "b"}) worker.assign(run, endless(run));
  ASSERT_TRUE(worker.await("@line a "));
  ASSERT_TRUE(worker.await("@line b "));
  worker.assign("c", endless("c"));
  worker.stop("c");
  ASSERT_TRUE(worker.await("@end c 143"));
  EXPECT_THAT(worker.frames("@end"), ElementsAre("@end c 143"));
}

TEST_F(LongWorkerTest, SigtermEndsAllRunsAndTheWorker) {
  WorkerProcess worker(2, err());
  for (const char* run : {"a", "b"}) worker.assign(run, endless(run));
  ASSERT_TRUE(worker.await("@line a "));
  ASSERT_TRUE(worker.await("@line b "));
  worker.assign("c", endless("c"));
  worker.write_line("{\"stop\": \"nobody\"}");
  worker.terminate();
  EXPECT_EQ(worker.wait(), 0) << worker.err();
  EXPECT_THAT(worker.frames("@end a"), ElementsAre("@end a 143"));
  EXPECT_THAT(worker.frames("@end b"), ElementsAre("@end b 143"));
}

TEST_F(LongWorkerTest, AtTheEndOfFileItFinishesWhatIsAtHand) {
  const api::TrialFile next = trial("next", api::BackendKind::kReference);
  WorkerProcess worker(1, err());
  worker.assign("a", endless("a"));
  ASSERT_TRUE(worker.await("{\"step\": 2"));
  worker.assign("next", write(next));
  worker.stop("a");
  worker.close_assignments();
  EXPECT_EQ(worker.wait(), 0) << worker.err();
  EXPECT_THAT(worker.frames("@end"), ElementsAre("@end a 143", "@end next 0"));
}

// ---- Bad input ---------------------------------------------------------------------------------

TEST_F(WorkerTest, AssignmentsThatCannotBeReadAreSkipped) {
  const api::TrialFile good = trial("good", api::BackendKind::kReference);
  WorkerProcess worker(1, err());
  for (const char* line : {"", "{]", "[]", "{\"run\": 7}", "{\"run\": \"a b\"}", "{\"hello\": 1}",
                           "{\"stop\": null}", "\x1e\xff"}) {
    worker.write_line(line);
  }
  worker.write_line("{\"run\": \"" + std::string(300 << 10, 'x') + "\"}");
  worker.write_line("{\"run\": \"" + std::string(300, 'x') + "\"}");
  worker.assign("good", write(good));
  worker.close_assignments();
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_THAT(worker.frames(), ElementsAre("@ready 1 1", "@begin good", "@end good 0"));
  for (const char* words : {"more than 262144 bytes", "no JSON object", "whose run is no name"}) {
    EXPECT_THAT(worker.err(), HasSubstr(words));
  }
}

TEST_F(WorkerTest, RefusesWhatIsNotForASlot) {
  api::TrialFile wide = trial("wide", api::BackendKind::kReference);
  wide.workers = 2;
  api::TrialFile open = trial("open", api::BackendKind::kReference);
  open.least_workers = 1;
  api::TrialFile gpus = trial("gpus", api::BackendKind::kReference);
  gpus.gpus_per_worker = 2;
  WorkerProcess worker(1, err());
  for (const api::TrialFile& one : {wide, open, gpus}) {
    worker.assign(one.trial, write(one));
    EXPECT_TRUE(worker.await("@refuse " + one.trial + " ")) << worker.err();
  }
  worker.write_line("{\"run\": \"bare\", \"environment\": {}}");
  EXPECT_TRUE(worker.await("@refuse bare its environment has no FETTLE_TRIAL"));
  EXPECT_THAT(worker.frames("@begin"), IsEmpty());
}

TEST_F(LongWorkerTest, RefusesMoreRunsThanMayWait) {
  WorkerProcess worker(1, err());
  worker.assign("a", endless("a"));
  ASSERT_TRUE(worker.await("@begin a"));
  for (const char* run : {"b", "c", "d"}) worker.assign(run, endless(run));
  EXPECT_TRUE(worker.await("@refuse d as many runs wait here as may"));
  EXPECT_THAT(worker.frames("@refuse"), testing::SizeIs(1));
}

TEST_F(WorkerTest, WithoutARunnerItSaysHowToTrain) {
  const pid_t test = getpid();
  const pid_t child = fork();
  if (child == 0) become_trainer(test, "", directory_.file("out"), err(), {"--worker"});
  EXPECT_EQ(exit_code(child), 2);
  EXPECT_THAT(written_to(err()), HasSubstr("without --worker this program trains one trial"));
  const pid_t slots = fork();
  if (slots == 0) become_trainer(test, "", directory_.file("out"), err(), {"--slots", "2"});
  EXPECT_EQ(exit_code(slots), 2);
  EXPECT_THAT(written_to(err()), HasSubstr("--slots is for --worker"));
}

}  // namespace
}  // namespace fettle::trainer
