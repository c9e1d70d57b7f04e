// The program as several workers of one trial, as real processes that meet over the loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "api/trial_file.h"
#include "base/json.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/program.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

class WorkersTest : public testing::Test {
 protected:
  WorkersTest() {
    trial_.study = "s";
    trial_.study_uid = "u";
    trial_.trial = "s-0";
    trial_.until_step = 3;
    trial_.resource.max = 3;
    trial_.objectives = {{"validation_accuracy", api::Direction::kMaximize}};
    trial_.trainer.emplace();
    trial_.trainer->data = write_synthetic(directory_, 400);
    trial_.trainer->model.layers = {conv(4), simple(api::LayerType::kBatchNorm),
                                    simple(api::LayerType::kRelu), dropout(0.1), linear(4)};
    api::TrainingConfig& training = trial_.trainer->training;
    training.backend = api::BackendKind::kReference;
    training.global_batch = 50;  // 300 samples; W = 3 and 4 share it unevenly
    training.norm_group = 10;
    training.epochs = 3;
    training.momentum = 0.9;
  }
  ~WorkersTest() override {
    for (const pid_t worker : workers_) kill(worker, SIGKILL);
    for (const pid_t worker : workers_) waitpid(worker, nullptr, 0);
  }

  // A world of so many, with checkpoints of its own.
  void begin(std::int64_t world_size, const std::string& name) {
    name_ = name;
    port_ = free_port();
    trial_.workers = world_size;
    trial_.checkpoints.directory = directory_.file(name);
    workers_.clear();
  }
  pid_t start(std::int64_t rank) {
    const std::string file = stream(rank, "json");
    EXPECT_TRUE(write_file(file, api::write_trial_file(trial_).dump()).ok());
    const pid_t test = getpid();
    const pid_t child = fork();
    if (child == 0) become_worker(rank, file, test);
    workers_.push_back(child);
    return child;
  }
  void start_all() {
    for (std::int64_t rank = 0; rank < trial_.workers; ++rank) start(rank);
  }
  [[noreturn]] void become_worker(std::int64_t rank, const std::string& file, pid_t test) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(trial_.workers).c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", std::to_string(port_).c_str(), 1);
    setenv("FETTLE_RENDEZVOUS_TOKEN", "of this test", 1);
    setenv("FETTLE_RENDEZVOUS_SECONDS", meeting_seconds_.c_str(), 1);
    set_up_gpu(rank);
    become_trainer(test, file, stream(rank, "out"), stream(rank, "err"));
  }

  virtual void set_up_gpu(std::int64_t /*rank*/) {}

  std::vector<int> exit_codes() {
    std::vector<int> codes;
    for (const pid_t worker : workers_) codes.push_back(exit_code(worker));
    workers_.clear();
    return codes;
  }

  std::string stream(std::int64_t rank, const std::string& kind) const {
    return directory_.file(name_ + "." + std::to_string(rank) + "." + kind);
  }
  std::string content(std::int64_t rank, const std::string& kind) const {
    return written_to(stream(rank, kind));
  }
  void await(std::int64_t rank, const std::string& kind, const std::string& text) {
    await_times(rank, kind, text, 1);
  }

  void await_times(std::int64_t rank, const std::string& kind, const std::string& text, int times) {
    for (int i = 0; i < 3000; ++i) {
      const std::string all = content(rank, kind);
      int found = 0;
      for (auto at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
      if (found >= times) return;
      std::this_thread::sleep_for(10ms);
    }
    FAIL() << "rank " << rank << " never wrote " << text << " to " << kind << ": "
           << content(rank, kind);
  }

  // The losses that rank 0 printed, epoch by epoch.
  std::vector<double> losses(const std::string& metric) const {
    std::vector<double> values;
    std::string text = content(0, "out");
    for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos;) {
      const auto line = parse_json(text.substr(0, end), {.allow_non_finite = true});
      if (line.ok() && line->find(metric) != nullptr) {
        values.push_back(line->find(metric)->as_double());
      }
      text.erase(0, end + 1);
    }
    return values;
  }

  void expect_curve(const std::vector<double>& expected, const std::string& metric) {
    const std::vector<double> found = losses(metric);
    ASSERT_EQ(found.size(), expected.size()) << content(0, "err");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 2e-5 * expected[i]) << metric << " of epoch " << i + 1;
    }
  }

  TemporaryDirectory directory_;
  api::TrialFile trial_;
  std::string name_;
  std::string meeting_seconds_ = "30";
  int port_ = 0;
  std::vector<pid_t> workers_;
};

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
      EXPECT_TRUE(losses("communication_share").empty()) << "one alone has nobody to talk to";
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

// Long enough to be interrupted, with steps that are made again and again.
class LongWorkersTest : public WorkersTest {
 protected:
  LongWorkersTest() { run_until(400); }

  void run_until(std::int64_t epochs) {
    trial_.trainer->training.epochs = trial_.until_step = trial_.resource.max = epochs;
  }
  void train_undisturbed() {
    begin(1, "undisturbed");
    start_all();
    ASSERT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
    training_ = losses("loss");
    validation_ = losses("validation_loss");
  }
  void expect_undisturbed() {
    expect_curve(training_, "loss");
    expect_curve(validation_, "validation_loss");
  }

  // After which two of them are left, with the curve of one.
  void lose_two_of_four() {
    train_undisturbed();
    trial_.least_workers = 2;
    begin(4, "disturbed");
    start_all();
    await(0, "out", "\"step\": 3");
    kill(workers_[1], SIGKILL);
    await(0, "err", "rank 0 of 3 workers");
    kill(workers_[3], SIGKILL);
    EXPECT_THAT(exit_codes(), testing::ElementsAre(0, -SIGKILL, 0, -SIGKILL)) << content(0, "err");
    EXPECT_THAT(content(0, "err"), HasSubstr("rank 0 of 2 workers"));
    expect_undisturbed();
  }

  // Of one worker, when it trained undisturbed.
  std::vector<double> training_;
  std::vector<double> validation_;
};

TEST_F(LongWorkersTest, AWorkerThatIsKilledIsNamedAndEndsTheOthers) {
  begin(3, "killed");
  start_all();
  await(0, "out", "\"step\"");
  const auto killed = std::chrono::steady_clock::now();
  kill(workers_[2], SIGKILL);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(1, 1, -SIGKILL));
  EXPECT_LT(std::chrono::steady_clock::now() - killed, 10s);
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("rank 2 is gone, its connection was cut"));
  }
}

TEST_F(LongWorkersTest, SigtermToAnyOfThemStopsAllAfterTheSameStep) {
  begin(3, "stopped");
  start_all();
  await(0, "out", "\"step\"");
  kill(workers_[1], SIGTERM);
  const std::vector<int> codes = exit_codes();
  EXPECT_THAT(codes, testing::Each(143)) << content(0, "err") << content(1, "err");
  EXPECT_THAT(content(0, "out"), HasSubstr("\"checkpoint\""));
}

TEST_F(LongWorkersTest, ThoseThatAreLeftGoOnAndTheCurveStaysTheSame) {
  run_until(30);
  lose_two_of_four();
}

// What a cluster does when `workers` is changed: pods of the same template come, and the last are
// told to stop.
TEST_F(LongWorkersTest, WorkersThatComeAndLeaveDoNotChangeTheCurve) {
  run_until(60);
  train_undisturbed();

  trial_.least_workers = 1;
  begin(1, "elastic");
  start(0);
  await(0, "out", "\"step\": 2");
  start(1);
  await(0, "err", "rank 0 of 2 workers");
  start(2);
  await(0, "err", "rank 0 of 3 workers");
  kill(workers_[1], SIGKILL);
  await(1, "err", "of 3 workers");
  start(1);  // again, in the place of the one that was lost
  await_times(0, "err", "rank 0 of 3 workers", 2);
  kill(workers_[2], SIGTERM);
  EXPECT_EQ(exit_code(workers_[2]), 143);
  EXPECT_THAT(content(2, "err"), HasSubstr("left; the others go on"));
  EXPECT_EQ(exit_code(workers_[0]), 0) << content(0, "err");
  EXPECT_EQ(exit_code(workers_[3]), 0) << content(1, "err");
  expect_undisturbed();
  EXPECT_EQ(losses("world_size").back(), 2) << content(0, "err");
}

// Gradients of a large network are on their way while they are still being worked out.
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

// With a worker its part of the state is lost: the others go back to the end of the last epoch.
TEST_F(LongWorkersTest, WithAShardedOptimiserThoseThatAreLeftGoOnFromTheCheckpoint) {
  run_until(30);
  trial_.trainer->training.optimizer = api::OptimizerKind::kAdam;
  train_undisturbed();

  trial_.trainer->training.shard_optimizer = true;
  trial_.least_workers = 2;
  begin(4, "sharded");
  start_all();
  await(0, "out", "\"step\": 3");
  kill(workers_[1], SIGKILL);
  await(0, "err", "rank 0 of 3 workers");
  await(0, "err", "goes on from ");
  kill(workers_[3], SIGTERM);  // this one leaves its part behind
  EXPECT_THAT(exit_codes(), testing::ElementsAre(0, -SIGKILL, 0, 143)) << content(0, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("the others go on from the newest checkpoint"));
  EXPECT_THAT(content(0, "err"), HasSubstr("rank 0 of 2 workers"));
  expect_undisturbed();
}

TEST_F(LongWorkersTest, AShardOfTheOptimiserThatNoCheckpointHasEndsTheRun) {
  trial_.trainer->training.optimizer = api::OptimizerKind::kAdam;
  trial_.trainer->training.shard_optimizer = true;
  trial_.least_workers = 1;
  begin(3, "unsaved");
  trial_.checkpoints.directory.clear();
  start_all();
  await(0, "out", "\"step\"");
  kill(workers_[2], SIGKILL);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(1, 1, -SIGKILL));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("without checkpoints there is nothing to go on"));
  }
}

TEST_F(WorkersTest, GoesOnWithAnotherNumberOfWorkers) {
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
  EXPECT_THAT(content(0, "err"), HasSubstr("goes on from "));
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
  EXPECT_THAT(exit_codes(), testing::Each(1));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("rank 2 of 3 did not come within 1 s"));
  }
}

TEST_F(WorkersTest, AWorkerWithAnotherConfigurationIsToldWhatDiffers) {
  begin(2, "differs");
  start(0);
  trial_.trainer->training.learning_rate = 0.5;
  start(1);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(1, 2));
  EXPECT_THAT(content(1, "err"), HasSubstr("training.learningRate is 0.01 there and 0.5 here"));
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

// ---- With a GPU each, emulated, and NCCL, too --------------------------------------------------

class GpuWorkersTest : public LongWorkersTest {
 protected:
  GpuWorkersTest() {
    api::TrainingConfig& training = trial_.trainer->training;
    training.backend = api::BackendKind::kCuda;
    training.norm_group.reset();
    training.global_batch = 20;
    trial_.trainer->data.train_samples = 50;
    trial_.trainer->model.layers = {linear(16), simple(api::LayerType::kRelu), linear(4)};
    run_until(10);
  }

  // What is forgotten to be waited for is overtaken, and NCCL takes its time.
  void set_up_gpu(std::int64_t rank) override {
    const std::string device = std::to_string(shares_a_gpu_ ? 0 : rank);
    setenv("FETTLE_CUDA_LIBRARY", program_path("../tests/emulated/libfettle_cuda.so").c_str(), 1);
    setenv("FETTLE_EMULATOR_DEVICE", device.c_str(), 1);
    setenv("FETTLE_EMULATOR_STREAMS", "others-first", 1);
    setenv("FETTLE_EMULATOR_NCCL_POLLS", "2", 1);
  }

  bool shares_a_gpu_ = false;
};

TEST_F(GpuWorkersTest, TheCurveIsThatOfOneWorkerForEveryWorldSize) {
  run_until(3);
  train_undisturbed();
  for (std::int64_t world_size = 2; world_size <= 4; ++world_size) {
    SCOPED_TRACE(testing::Message() << "W=" << world_size);
    begin(world_size, "w" + std::to_string(world_size));
    start_all();
    EXPECT_THAT(exit_codes(), testing::Each(0)) << content(0, "err") << content(1, "err");
    expect_undisturbed();
  }
}

TEST_F(GpuWorkersTest, TwoOnOneCardAreRefused) {
  shares_a_gpu_ = true;
  begin(2, "shared");
  start_all();
  EXPECT_THAT(exit_codes(), testing::Each(2));
  for (const std::int64_t rank : {0, 1}) {
    EXPECT_THAT(content(rank, "err"), HasSubstr("ranks 0 and 1 both use the GPU GPU-00"));
  }
}

TEST_F(GpuWorkersTest, ThoseThatAreLeftGoOnAndTheCurveStaysTheSame) { lose_two_of_four(); }

TEST_F(GpuWorkersTest, WithAShardedOptimiserThoseThatAreLeftGoOnFromTheCheckpoint) {
  trial_.trainer->training.optimizer = api::OptimizerKind::kAdam;
  train_undisturbed();
  trial_.trainer->training.shard_optimizer = true;
  trial_.least_workers = 2;
  begin(3, "sharded");
  start_all();
  await(0, "out", "\"step\": 3");
  kill(workers_[1], SIGKILL);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(0, -SIGKILL, 0)) << content(0, "err");
  EXPECT_THAT(content(0, "err"), HasSubstr("the others go on from the newest checkpoint"));
  expect_undisturbed();
}

}  // namespace
}  // namespace fettle::trainer
