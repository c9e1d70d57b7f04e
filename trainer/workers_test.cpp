// The program as several workers of one trial, as real processes that meet over the loopback.
#include "trainer/testing/workers.h"

#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

namespace fettle::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Enough epochs that a test's interference comes before the end, even on a busy machine.
constexpr std::int64_t kMany = 200;

TEST_F(WorkersTest, TheCurveIsThatOfOneWorkerForEveryWorldSize) {
  std::vector<double> training;
  std::vector<double> validation;
  for (std::int64_t world_size = 1; world_size <= 4; ++world_size) {
    SCOPED_TRACE(testing::Message() << "W=" << world_size);
    begin(world_size, "w" + std::to_string(world_size));
    start_all();
    EXPECT_THAT(exit_codes(), testing::Each(0)) << content(0, "err") << content(1, "err");
    if (world_size == 1) {
      training = losses("loss");
      validation = losses("validation_loss");
      ASSERT_EQ(training.size(), 3U) << content(0, "err");
      EXPECT_TRUE(losses("communication_share").empty()) << "one alone has no other to talk to";
      continue;
    }
    expect_curve(training, "loss");
    expect_curve(validation, "validation_loss");
    EXPECT_EQ(losses("world_size").back(), world_size);
    EXPECT_EQ(losses("global_batch").back(), 50);
    EXPECT_GT(losses("communication_share").back(), 0);
    EXPECT_LT(losses("communication_share").back(), 1);
    EXPECT_EQ(content(1, "out"), "") << "rank 0 alone reports";
  }
}

// A collective has 300 s, as long as ctest lets this program run: only the loss can end it sooner.
TEST_F(LongWorkersTest, AWorkerThatIsKilledIsNamedAndEndsTheOthers) {
  run_until(kForever);
  begin(3, "killed");
  start_all();
  await(0, "out", "\"step\"");
  kill(workers_[2], SIGKILL);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(75, 75, -SIGKILL));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("rank 2 is gone, its connection was cut"));
  }
}

TEST_F(LongWorkersTest, SigtermToAnyOfThemStopsAllAfterTheSameStep) {
  run_until(kForever);
  begin(3, "stopped");
  start_all();
  await(0, "out", "\"step\"");
  kill(workers_[1], SIGTERM);
  const std::vector<int> codes = exit_codes();
  EXPECT_THAT(codes, testing::Each(143)) << content(0, "err") << content(1, "err");
  EXPECT_THAT(content(0, "out"), HasSubstr("\"checkpoint\""));
}

TEST_F(LongWorkersTest, ThoseThatAreLeftGoOnAndTheCurveStaysTheSame) {
  run_until(kMany);
  lose_two_of_four();
  EXPECT_THAT(content(0, "err"), HasSubstr("keeps its network, with its plans and memory"));
}

// As on a paused node whose kernel still acknowledges: only SIGTERM ends rank 0's wait.
TEST_F(LongWorkersTest, SigtermIsHeardWhileAnotherWorkerHangs) {
  run_until(kMany);
  train_undisturbed();
  trial_.grace_period = 3;
  begin(2, "hangs");
  start_all();
  await(0, "out", "\"step\": 2");
  kill(workers_[1], SIGSTOP);
  kill(workers_[0], SIGTERM);
  EXPECT_EQ(exit_code(workers_[0]), 143) << content(0, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("stopped; the checkpoint is written"));
  const std::string out = content(0, "out");
  const auto last = parse_json(out.substr(out.rfind('{')));
  ASSERT_TRUE(last.ok()) << out;
  ASSERT_NE(last->find("checkpoint"), nullptr) << out;
  EXPECT_TRUE(std::filesystem::exists(last->find("checkpoint")->as_string()));
  kill(workers_[1], SIGKILL);
  waitpid(workers_[1], nullptr, 0);
  workers_.clear();

  trial_.workers = 1;
  begin(1, "hangs");  // the same directory
  start_all();
  ASSERT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("resumes from "));
  EXPECT_NEAR(losses("validation_loss").back(), validation_.back(), 2e-5 * validation_.back());
}

TEST_F(LongWorkersTest, AWorkerThatHangsIsLeftBySigtermOfAnother) {
  run_until(kForever);
  trial_.grace_period = 3;
  begin(2, "rank0-hangs");
  start_all();
  await(0, "out", "\"step\": 2");
  kill(workers_[0], SIGSTOP);
  kill(workers_[1], SIGTERM);
  EXPECT_EQ(exit_code(workers_[1]), 143) << content(1, "err");
  EXPECT_THAT(content(1, "err"), HasSubstr("the newest checkpoint stands"));
  workers_.pop_back();
}

// A small disk; needs root.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=24k") == 0;
  }
  ~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  const std::string path_;
  bool mounted_ = false;
};

// No other worker is missing, so even with spare workers none is excluded.
TEST_F(WorkersTest, AFullCheckpointVolumeIsSaidAndBlamedOnNoWorker) {
  for (const bool elastic : {false, true}) {
    const std::string name = elastic ? "full-elastic" : "full";
    begin(2, name);
    if (elastic) trial_.least_workers = 1;
    const SmallDisk disk(trial_.checkpoints.directory);
    if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
    start_all();
    EXPECT_THAT(exit_codes(), testing::ElementsAre(1, 75)) << content(0, "err");
    EXPECT_THAT(content(0, "err"), HasSubstr("No space left on device; make room there"));
    EXPECT_THAT(content(0, "err"), testing::Not(HasSubstr("the others continue")));
  }
}

TEST_F(WorkersTest, OneAloneOnAFullCheckpointVolumeMissesNoOther) {
  begin(1, "full-alone");
  const SmallDisk disk(trial_.checkpoints.directory);
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  ASSERT_TRUE(
      write_file(trial_.checkpoints.directory + "/ballast", std::string(23 << 10, 'x')).ok());
  start_all();
  EXPECT_THAT(exit_codes(), testing::Each(1)) << content(0, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("No space left on device"));
}

// The actions of a cluster when `workers` is changed: pods of the same template are added, and the
// last ones are asked to stop.
TEST_F(LongWorkersTest, WorkersThatComeAndLeaveDoNotChangeTheCurve) {
  run_until(kMany);
  train_undisturbed();

  trial_.least_workers = 1;
  begin(1, "elastic");
  start(0);
  await(0, "out", "\"step\": 2");
  start_late(1);
  await(0, "err", "rank 0 of 2 workers");
  start_late(2);
  for (const std::int64_t rank : {0, 1}) await(rank, "err", "of 3 workers");
  kill(workers_[1], SIGKILL);
  start_late(1);  // again, replacing the lost worker
  await_times(0, "err", "rank 0 of 3 workers", 2);
  kill(workers_[2], SIGTERM);
  EXPECT_EQ(exit_code(workers_[2]), 143);
  EXPECT_THAT(content(2, "err"), HasSubstr("left; the others continue"));
  EXPECT_EQ(exit_code(workers_[0]), 0) << content(0, "err");
  EXPECT_EQ(exit_code(workers_[3]), 0) << content(1, "err");
  expect_undisturbed();
  EXPECT_EQ(losses("world_size").back(), 2) << content(0, "err");
}

// Gradients of a large network are sent while others are still being computed.
TEST_F(LongWorkersTest, OneThatIsLostWhileALargeNetworkAddsUpHoldsUpNobody) {
  trial_.trainer->model.layers = {linear(9000), simple(api::LayerType::kRelu), linear(40),
                                  linear(4)};
  trial_.trainer->training.norm_group.reset();
  trial_.trainer->training.backend = api::BackendKind::kAuto;
  run_until(12);
  train_undisturbed();
  trial_.least_workers = 1;
  begin(4, "disturbed");
  start_all();
  std::int64_t epoch = 2;
  for (const std::size_t lost : {3, 1, 2}) {
    await(0, "out", "\"step\": " + std::to_string(epoch++));
    kill(workers_[lost], SIGKILL);
  }
  EXPECT_THAT(exit_codes(), testing::ElementsAre(0, -SIGKILL, -SIGKILL, -SIGKILL))
      << content(0, "err");
  expect_undisturbed();
}

// A lost worker's part of the state is lost, too: the others return to the end of the last epoch.
TEST_F(LongWorkersTest, WithAShardedOptimiserThoseThatAreLeftGoOnFromTheCheckpoint) {
  run_until(kMany);
  trial_.trainer->training.optimizer = api::OptimizerKind::kAdam;
  train_undisturbed();

  trial_.trainer->training.shard_optimizer = true;
  trial_.least_workers = 2;
  begin(4, "sharded");
  start_all();
  await(0, "out", "\"step\": 3");
  kill(workers_[1], SIGKILL);
  await(0, "err", "rank 0 of 3 workers");
  await(0, "err", "resumes from ");
  kill(workers_[3], SIGTERM);  // this one leaves its part behind
  EXPECT_THAT(exit_codes(), testing::ElementsAre(0, -SIGKILL, 0, 143)) << content(0, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("the others continue from the newest checkpoint"));
  EXPECT_THAT(content(0, "err"), HasSubstr("rank 0 of 2 workers"));
  expect_undisturbed();
}

TEST_F(LongWorkersTest, AShardOfTheOptimiserThatNoCheckpointHasEndsTheRun) {
  trial_.trainer->training.optimizer = api::OptimizerKind::kAdam;
  trial_.trainer->training.shard_optimizer = true;
  trial_.least_workers = 1;
  run_until(kForever);
  begin(3, "unsaved");
  trial_.checkpoints.directory.clear();
  start_all();
  await(0, "out", "\"step\"");
  kill(workers_[2], SIGKILL);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(75, 75, -SIGKILL));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("without checkpoints there is nothing to resume"));
  }
}

TEST_F(WorkersTest, ResumesWithAnotherNumberOfWorkers) {
  begin(1, "whole");
  start_all();
  ASSERT_THAT(exit_codes(), testing::Each(0));
  const double whole = losses("validation_loss").back();

  trial_.until_step = 1;
  begin(3, "resumed");
  start_all();
  ASSERT_THAT(exit_codes(), testing::Each(0));
  trial_.until_step = 3;
  begin(2, "resumed");  // the same directory
  start_all();
  ASSERT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
  EXPECT_NEAR(losses("validation_loss").back(), whole, 2e-5 * whole);
  EXPECT_THAT(content(0, "err"), HasSubstr("resumes from "));
}

TEST_F(WorkersTest, ABatchSmallerThanTheWorldAndDataSmallerThanTheBatch) {
  for (const std::int64_t batch : {2, 5000}) {
    trial_.trainer->training.global_batch = batch;
    trial_.trainer->training.norm_group = 2;
    trial_.trainer->data.train_samples = 30;
    begin(1, "one-" + std::to_string(batch));
    start_all();
    ASSERT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
    const std::vector<double> one = losses("loss");
    begin(4, "four-" + std::to_string(batch));
    start_all();
    ASSERT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
    expect_curve(one, "loss");
  }
}

TEST_F(WorkersTest, ARankThatNeverComesIsNamed) {
  meeting_seconds_ = "1";
  begin(3, "absent");
  start(0);
  start(1);
  EXPECT_THAT(exit_codes(), testing::Each(75));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("rank 2 of 3 did not come within 1 s"));
  }
}

TEST_F(WorkersTest, WhoeverWaitsForTheOthersEndsWhenItIsTold) {
  begin(3, "waits");
  start(0);
  start(1);
  for (const std::int64_t rank : {0, 1}) await(rank, "err", "waits for the other workers");
  // All at once: a worker that is signalled later may find the other gone, and end with 75.
  for (const int signal : {SIGSTOP, SIGTERM, SIGCONT}) {
    for (const pid_t worker : workers_) kill(worker, signal);
  }
  EXPECT_THAT(exit_codes(), testing::Each(143));
  EXPECT_THAT(content(0, "err"), HasSubstr("it was to stop before all workers were there"));
}

TEST_F(WorkersTest, AWorkerWithAnotherConfigurationIsToldWhatDiffers) {
  begin(2, "differs");
  start(0);
  trial_.trainer->training.learning_rate = 0.5;
  start(1);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(75, 2));
  EXPECT_THAT(content(1, "err"), HasSubstr("training.learningRate is 0.01 there and 0.5 here"));
}

// Like a stale or partial copy on one node: the same paths, other files.
TEST_F(WorkersTest, WorkersThatReadDifferentDataAreRefused) {
  trial_.trainer->data.train_images = "images";
  trial_.trainer->data.train_labels = "labels";
  for (const std::int64_t samples : {440, 380}) {
    const TemporaryDirectory elsewhere;
    write_synthetic(elsewhere, samples);
    begin(2, "stale-" + std::to_string(samples));
    folder_ = directory_.path();
    start(0);
    folder_ = elsewhere.path();
    start(1);
    EXPECT_THAT(exit_codes(), testing::Each(2));
    EXPECT_EQ(content(0, "out"), "") << "no loss of two trainings that are mixed";
    EXPECT_THAT(content(0, "err"), HasSubstr("rank 1 reads other data than rank 0: " +
                                             std::to_string(samples) + " samples, rank 0 has 400"));
    EXPECT_THAT(content(1, "err"), HasSubstr("samples: 400 there, " + std::to_string(samples)));
    EXPECT_THAT(content(1, "err"), HasSubstr("all workers must read the same files"));
  }
}

TEST_F(LongWorkersTest, DataThatChangeOnOneWorkerEndAll) {
  run_until(kForever);
  const TemporaryDirectory elsewhere;
  write_synthetic(elsewhere, 400);
  trial_.trainer->data.train_images = "images";
  trial_.trainer->data.train_labels = "labels";
  begin(2, "written");
  folder_ = directory_.path();
  start(0);
  folder_ = elsewhere.path();
  start(1);
  await(0, "out", "\"step\"");
  std::string changed = *read_file(elsewhere.file("images"));
  changed.back() = static_cast<char>(changed.back() ^ 1);
  std::ofstream(elsewhere.file("images"), std::ios::in | std::ios::out) << changed;  // in place
  EXPECT_THAT(exit_codes(), testing::Each(1));
  EXPECT_THAT(content(1, "err"), HasSubstr("images was written to while it was trained on"));
  EXPECT_THAT(content(0, "err"), HasSubstr("the data of another worker changed"));
}

TEST_F(WorkersTest, WorkersWithAsManySamplesOfOtherContentAreRefused) {
  const TemporaryDirectory elsewhere;
  write_synthetic(elsewhere, 400);
  std::string changed = *read_file(elsewhere.file("images"));
  changed.back() = static_cast<char>(changed.back() ^ 1);
  ASSERT_TRUE(write_file(elsewhere.file("images"), changed).ok());
  trial_.trainer->data.train_images = "images";
  trial_.trainer->data.train_labels = "labels";
  begin(3, "changed");
  folder_ = directory_.path();
  start(0);
  start(1);
  folder_ = elsewhere.path();
  start(2);
  EXPECT_THAT(exit_codes(), testing::Each(2));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("rank 2 reads other data than rank 0: as many"));
  }
}

TEST_F(WorkersTest, ShardingOnSomeWorkersOnlyIsRefused) {
  begin(2, "half");
  start(0);
  trial_.trainer->training.shard_optimizer = true;
  start(1);
  EXPECT_THAT(exit_codes(), testing::Each(2));
  EXPECT_THAT(content(0, "err"), HasSubstr("training.shardOptimizer is true for 1 of 2 workers"));
}

TEST_F(WorkersTest, TheErrorOfRankZeroIsHeardByAll) {
  trial_.parent = {directory_.file("nowhere"), 2};
  begin(2, "orphans");
  start_all();
  EXPECT_THAT(exit_codes(), testing::Each(2));
  EXPECT_THAT(content(1, "err"), HasSubstr("rank 0 cannot begin: "));
}

// Rank 0 waits for its parent's checkpoint longer than a collective may take.
TEST_F(WorkersTest, TheOthersWaitForRankZeroHoweverLongItReads) {
  begin(1, "parent");
  start_all();
  ASSERT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
  const std::string parent = trial_.checkpoints.directory;
  const std::string hidden = directory_.file("hidden");
  std::filesystem::create_directory(hidden);
  const auto move_all = [](const std::string& from, const std::string& to) {
    for (const auto& file : std::filesystem::directory_iterator(from)) {
      std::filesystem::rename(file.path(), to + "/" + file.path().filename().string());
    }
  };
  move_all(parent, hidden);
  trial_.parent = {parent, 3};
  trial_.until_step = trial_.resource.max = 4;
  trial_.trainer->training.epochs = 4;
  begin(2, "child");
  constexpr std::chrono::seconds kLimit(5);
  setenv("FETTLE_COLLECTIVE_SECONDS", std::to_string(kLimit.count()).c_str(), 1);
  start_all();
  unsetenv("FETTLE_COLLECTIVE_SECONDS");
  await(0, "err", "waits for it");
  std::this_thread::sleep_for(2 * kLimit);
  move_all(hidden, parent);
  EXPECT_THAT(exit_codes(), testing::Each(0)) << content(0, "err") << content(1, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("starts from step 3 of its parent"));
}

TEST_F(WorkersTest, BatchNormWithoutGroupsIsRefused) {
  trial_.trainer->training.norm_group.reset();
  begin(2, "ungrouped");
  start_all();
  EXPECT_THAT(exit_codes(), testing::Each(2));
  EXPECT_THAT(content(0, "err"), HasSubstr("set training.normGroup"));
}

TEST_F(WorkersTest, AWorldThatIsNotTheTrialsIsRefused) {
  begin(2, "mismatch");
  start(0);
  trial_.workers = 3;
  start(1);
  EXPECT_EQ(exit_code(workers_[1]), 2);
  EXPECT_THAT(content(1, "err"), HasSubstr("it expects 3 workers, here are to be 2"));
  workers_.pop_back();
}

}  // namespace
}  // namespace fettle::trainer
