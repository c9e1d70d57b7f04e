// The program as its runner sees it: trial file in, lines and exit codes out.
#include "trainer/testing/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "api/trial/trial_file.h"
#include "base/json.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    trial_.study = "s";
    trial_.study_uid = "u";
    trial_.trial = "s-0";
    trial_.until_step = 2;
    trial_.resource.max = 3;
    trial_.objectives = {{"validation_accuracy", api::Direction::kMaximize}};
    trial_.checkpoints.directory = directory_.file("checkpoints");
    trial_.trainer.emplace();
    trial_.trainer->data = write_synthetic(directory_, 400);
    trial_.trainer->model.layers = {linear(16), simple(api::LayerType::kRelu), linear(4)};
    trial_.trainer->training.backend = api::BackendKind::kReference;
    trial_.trainer->training.epochs = 3;
  }

  // Starts the program with FETTLE_TRIAL set to `file`.
  pid_t start(const std::string& file, const std::vector<std::string>& options = {}) {
    const pid_t test = getpid();
    const pid_t child = fork();
    if (child == 0) {
      become_trainer(test, file, directory_.file("out"), directory_.file("err"), options);
    }
    return child;
  }
  std::string write_trial() {
    std::string path = directory_.file("trial.json");
    EXPECT_TRUE(write_file(path, api::write_trial_file(trial_).dump()).ok());
    return path;
  }
  int run(const std::vector<std::string>& options = {}) {
    return exit_code(start(write_trial(), options));
  }
  std::string out() { return written_to(directory_.file("out")); }
  void await_step_2() { ASSERT_TRUE(await_text(directory_.file("out"), "\"step\": 2,")) << err(); }
  std::string err() { return written_to(directory_.file("err")); }
  Json last_line() {
    std::string text = out();
    text.pop_back();
    return *parse_json(text.substr(text.rfind('\n') + 1), {.allow_non_finite = true});
  }
  void expect_wrong_input(const std::string& message) {
    EXPECT_EQ(run(), 2);
    EXPECT_THAT(err(), HasSubstr(message));
    EXPECT_EQ(out(), "");
  }

  TemporaryDirectory directory_;
  api::TrialFile trial_;
};

TEST_F(ProgramTest, TrainsToTheStepThatIsAskedFor) {
  ASSERT_EQ(run(), 0) << err();
  const Json line = last_line();
  EXPECT_EQ(*line.find("step"), Json(2));
  EXPECT_EQ(*line.find("final"), Json(true));
  EXPECT_EQ(*line.find("checkpoint_step"), Json(2));
  EXPECT_GT(line.find("validation_accuracy")->as_double(), 0.2);

  trial_.until_step = 3;  // promoted: resumes
  ASSERT_EQ(run(), 0) << err();
  EXPECT_EQ(*last_line().find("step"), Json(3));
  EXPECT_THAT(err(), HasSubstr("resumes from " + trial_.checkpoints.directory));
}

// A driver reports GPUs, and the backend for them cannot be opened.
TEST_F(ProgramTest, SaysOnceThatAGpuIsLeftUnused) {
  trial_.trainer->training.backend = api::BackendKind::kAuto;
  ::setenv("LD_LIBRARY_PATH", program_path("../tests/fake_nvml").c_str(), 1);
  ::setenv("FETTLE_CUDA_LIBRARY", directory_.file("no_library.so").c_str(), 1);
  ASSERT_EQ(run(), 0) << err();
  const std::string said = err();
  const std::string warning = "WARNING: this machine has 2 GPUs (NVIDIA H100 80GB HBM3)";
  ASSERT_THAT(said, HasSubstr(warning));
  EXPECT_THAT(said, HasSubstr("there is no CUDA backend here"));
  EXPECT_EQ(said.find(warning), said.rfind(warning)) << "once";
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // hidden on purpose
  ASSERT_EQ(run(), 0) << err();
  EXPECT_THAT(err(), testing::Not(HasSubstr("WARNING")));
  for (const char* name : {"LD_LIBRARY_PATH", "FETTLE_CUDA_LIBRARY", "CUDA_VISIBLE_DEVICES"}) {
    ::unsetenv(name);
  }
}

TEST_F(ProgramTest, SigtermMeansCheckpointReportAnd143) {
  trial_.trainer->training.epochs = trial_.until_step = 1'000'000;
  const pid_t child = start(write_trial());
  await_step_2();
  kill(child, SIGTERM);
  EXPECT_EQ(exit_code(child), 143) << err();
  const Json line = last_line();
  EXPECT_GE(line.find("step")->as_integer(), 2);
  EXPECT_TRUE(std::filesystem::exists(line.find("checkpoint")->as_string()));
  EXPECT_EQ(line.find("final"), nullptr);
}

// Like a node that was paused, or cut off, and returns when its trial has a new run elsewhere.
TEST_F(ProgramTest, OneThatSleptDoesNotWriteOverTheRunThatReplacedIt) {
  trial_.trainer->training.epochs = trial_.until_step = 1'000'000;
  trial_.rungs = {1};  // leaves a checkpoint, however short the epoch is
  const pid_t slept = start(write_trial());
  await_step_2();
  kill(slept, SIGSTOP);
  const std::string said_before = err();
  trial_.run = 1;
  const std::string replacement = directory_.file("replacement.json");
  ASSERT_TRUE(write_file(replacement, api::write_trial_file(trial_).dump()).ok());
  const pid_t test = getpid();
  const pid_t next = fork();
  if (next == 0) {
    become_trainer(test, replacement, directory_.file("next.out"), directory_.file("next.err"));
  }
  const auto next_err = [this] { return written_to(directory_.file("next.err")); };
  EXPECT_TRUE(await_text(directory_.file("next.err"), "resumes from")) << next_err();
  kill(slept, SIGCONT);
  EXPECT_EQ(exit_code(slept), 1) << err();
  EXPECT_THAT(err().substr(said_before.size()),
              HasSubstr("belong to run 1 of the trial now (process "));
  kill(next, SIGTERM);
  EXPECT_EQ(exit_code(next), 143) << next_err();
}

// Data files are mapped.
TEST_F(ProgramTest, ADataFileThatIsCutShortEndsInWords) {
  trial_.trainer->training.epochs = trial_.until_step = 1'000'000;
  const pid_t child = start(write_trial());
  await_step_2();
  std::filesystem::resize_file(trial_.trainer->data.train_images, 100);
  EXPECT_EQ(exit_code(child), 1) << err();
  EXPECT_THAT(err(), testing::AnyOf(HasSubstr("became shorter"), HasSubstr("instead of 25616")));
}

TEST_F(ProgramTest, AFifoIsNoDataFile) {
  trial_.trainer->data.train_images = directory_.file("fifo");
  ASSERT_EQ(mkfifo(trial_.trainer->data.train_images.c_str(), 0600), 0);
  expect_wrong_input("fifo is not a file");
}

TEST_F(ProgramTest, ReportsThatCannotBePrintedFailTheTrial) {
  const std::string file = write_trial();
  const pid_t test = getpid();
  const pid_t child = fork();
  if (child == 0) become_trainer(test, file, "/dev/full", directory_.file("err"));
  EXPECT_EQ(exit_code(child), 1);
  EXPECT_THAT(err(), HasSubstr("cannot write to standard output: No space left on device"));
}

TEST_F(ProgramTest, DivergingIsAResult) {
  trial_.trainer->training.learning_rate = 1e6;
  trial_.trainer->training.momentum = 0.99;
  trial_.trainer->training.global_batch = 8;
  EXPECT_EQ(run(), 0) << err();
  EXPECT_THAT(out(), HasSubstr("\"validation_accuracy\": NaN"));
  EXPECT_EQ(*last_line().find("final"), Json(true));
}

TEST_F(ProgramTest, WithoutTheCudaBackendAutoTrainsOnTheCpu) {
  ASSERT_EQ(setenv("FETTLE_CUDA_LIBRARY", "/nowhere/libfettle_cuda.so", 1), 0);
  trial_.trainer->training.backend = api::BackendKind::kAuto;
  EXPECT_EQ(run(), 0) << err();
  EXPECT_THAT(err(), testing::Not(HasSubstr("cuda")));

  trial_.trainer->training.backend = api::BackendKind::kCuda;
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(err(), HasSubstr("/nowhere/libfettle_cuda.so"));
  EXPECT_THAT(err(), HasSubstr("make build CUDA=1"));
  unsetenv("FETTLE_CUDA_LIBRARY");
}

TEST_F(ProgramTest, WrongInputIsAClearSentenceAndExitCode2) {
  trial_.trainer->data.train_images += ".missing";
  expect_wrong_input("cannot open " + trial_.trainer->data.train_images + ": No such file");
}

TEST_F(ProgramTest, RefusesACheckpointOfAnotherModel) {
  ASSERT_EQ(run(), 0) << err();
  trial_.trainer->model.layers[0] = linear(17);
  expect_wrong_input("belongs to another training: model.layers");
}

TEST_F(ProgramTest, RefusesTrialsThatItCannotRun) {
  trial_.resource.unit = "minute";
  expect_wrong_input("resource.unit is \"minute\"; the built-in trainer counts epochs");
  trial_.resource.unit = "epoch";
  trial_.workers = 4;
  expect_wrong_input("the trial has 4 workers, but WORLD_SIZE says 1");
  trial_.workers = 1;
  trial_.trainer.reset();
  expect_wrong_input("no trainer configuration");
}

TEST_F(ProgramTest, RefusesAnUnknownReportSink) {
  setenv("FETTLE_REPORT", "pigeon", 1);
  expect_wrong_input("FETTLE_REPORT is \"pigeon\"");
  unsetenv("FETTLE_REPORT");
}

TEST_F(ProgramTest, WritesScalarsForTensorBoardWhereItIsAsked) {
  setenv("FETTLE_TENSORBOARD", "scalars", 1);
  expect_wrong_input("FETTLE_TENSORBOARD is \"scalars\"");
  const std::string root = directory_.file("scalars");
  setenv("FETTLE_TENSORBOARD", root.c_str(), 1);
  EXPECT_EQ(run(), 0) << err();
  unsetenv("FETTLE_TENSORBOARD");
  const std::string of_trial = root + "/" + trial_.study + "/" + trial_.trial;
  std::string events;
  for (const auto& file : std::filesystem::directory_iterator(of_trial)) {
    events += *read_file(file.path().string());
  }
  for (const char* name : {"brain.Event:2", "loss", "learning_rate"}) {
    EXPECT_THAT(events, HasSubstr(name));
  }
}

TEST_F(ProgramTest, ADryRunSaysWhatMemoryIsNeededAndTrainsNothing) {
  ASSERT_EQ(run({"--dry-run"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("1108 parameters, fp32, sgd, a batch of 128 over 1 worker"));
  EXPECT_THAT(out(), testing::ContainsRegex("activations +[0-9.]+ KiB"));
  EXPECT_FALSE(std::filesystem::exists(trial_.checkpoints.directory));

  ASSERT_EQ(run({"--dry-run", "--output", "json", "--workers", "4"}), 0) << err();
  const Json line = last_line();
  EXPECT_EQ(*line.find("step")->find("world_size"), Json(4));
  EXPECT_EQ(*line.find("step")->find("samples_at_once"), Json(32));
  EXPECT_GT(line.find("memory")->find("samples_fitting")->as_integer(), 1000);
  EXPECT_EQ(run({"--dry-run", "--output", "xml"}), 2);
  EXPECT_THAT(err(), HasSubstr("--output: xml not in {text,json}"));
}

TEST_F(ProgramTest, ADryRunForAGpuThatIsNotHereSaysWhatItWouldNeed) {
  ASSERT_EQ(run({"--dry-run"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("Data: on the host\n"));

  ASSERT_EQ(setenv("FETTLE_CUDA_LIBRARY", "/nowhere/libfettle_cuda.so", 1), 0);
  trial_.trainer->training.backend = api::BackendKind::kCuda;
  ASSERT_EQ(run({"--dry-run"}), 0) << err();
  EXPECT_THAT(out(), HasSubstr("Memory of a worker's GPU, at least:"));
  EXPECT_THAT(out(), testing::ContainsRegex("data +26.6 KiB"));  // 400 of 64 bytes and a label
  EXPECT_THAT(out(), HasSubstr("not known: the GPU is not here"));
  EXPECT_THAT(out(), HasSubstr("Memory of its host, at least:"));
  EXPECT_THAT(out(), HasSubstr("Data: on the device, where they fit beside the rest\n"));

  ASSERT_EQ(run({"--dry-run", "--output", "json"}), 0) << err();
  const Json line = last_line();
  EXPECT_EQ(*line.find("data"), Json("on the device"));
  EXPECT_EQ(line.find("memory")->find("usable"), nullptr);
  EXPECT_GT(line.find("memory")->find("host_usable")->as_integer(), 1000);
  unsetenv("FETTLE_CUDA_LIBRARY");
}

TEST_F(ProgramTest, RefusesWhatNeedsMoreMemoryThanThereIs) {
  auto& layers = trial_.trainer->model.layers;
  layers.assign(60, simple(api::LayerType::kRelu));  // 16 MiB a sample, each
  layers.insert(layers.begin(), conv(65'536, 1));
  layers.push_back(simple(api::LayerType::kGlobalPool));
  layers.push_back(linear(4));
  trial_.trainer->training.global_batch = 300;
  expect_wrong_input("the training needs at least 2");
  EXPECT_THAT(err(), testing::ContainsRegex("2[0-9][0-9] GiB of memory, with 300 samples held"));
  EXPECT_THAT(err(), HasSubstr("training.maxPerWorker up to "));
}

TEST_F(ProgramTest, AProfileIsATraceOfAFewStepsLayerByLayer) {
  const std::string path = directory_.file("traces/first.json");
  ASSERT_EQ(run({"--profile=2", "--trace", path}), 0) << err();
  EXPECT_THAT(err(), HasSubstr("wrote " + path));
  const Json trace = *parse_json(*read_file(path));
  std::map<std::string, int> spans;
  for (const Json& event : trace.find("traceEvents")->as_array()) {
    ++spans[event.find("name")->as_string()];
  }
  for (const char* name : {"step", "data wait", "forward model.layers[0] (linear)", "loss",
                           "backward model.layers[2] (linear)", "update"}) {
    EXPECT_EQ(spans[name], 2) << name;
  }
  EXPECT_GE(spans["checkpoint"], 1);
  EXPECT_EQ(spans["all-reduce"], 0) << "one alone has nothing to all-reduce";
}

TEST_F(ProgramTest, RefusesWhatIsNoTrialFile) {
  EXPECT_EQ(exit_code(start(directory_.file("nothing"))), 2);
  EXPECT_THAT(err(), HasSubstr("cannot open " + directory_.file("nothing")));
  ASSERT_TRUE(write_file(directory_.file("text"), "{]").ok());
  EXPECT_EQ(exit_code(start(directory_.file("text"))), 2);
  EXPECT_THAT(err(), HasSubstr("line 1"));
}

TEST_F(ProgramTest, ACheckpointDirectoryThatCannotBeMadeFailsTheTrial) {
  ASSERT_TRUE(write_file(trial_.checkpoints.directory, "a file").ok());
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err(), HasSubstr(trial_.checkpoints.directory));
}

}  // namespace
}  // namespace fettle::trainer
