// Workers with one emulated GPU each, and emulated NCCL.
#include <filesystem>
#include <fstream>

#include "trainer/testing/workers.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

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

  // Streams run ahead, so a missing wait shows, and NCCL takes its time.
  void set_up_gpu(std::int64_t rank) override {
    const std::string device = std::to_string(shares_a_gpu_ ? 0 : rank);
    setenv("FETTLE_CUDA_LIBRARY", program_path("../tests/emulated/libfettle_cuda.so").c_str(), 1);
    setenv("CUDA_VISIBLE_DEVICES", device.c_str(), 1);
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
  EXPECT_THAT(content(0, "err"), HasSubstr("the others continue from the newest checkpoint"));
  expect_undisturbed();
}

// ---- Workers with several GPUs each ------------------------------------------------------------

// The processes that `parent` has started, oldest first.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string id;
    std::string program;  // has no space
    std::string state;
    pid_t its_parent = 0;
    stat >> id >> program >> state >> its_parent;
    if (its_parent == parent) found.push_back(static_cast<pid_t>(std::stol(id)));
  }
  std::ranges::sort(found);
  return found;
}

class SeveralGpusTest : public GpuWorkersTest {
 protected:
  SeveralGpusTest() { trial_.gpus_per_worker = 2; }

  void set_up_gpu(std::int64_t worker) override {
    GpuWorkersTest::set_up_gpu(worker);
    const std::string first = std::to_string(2 * worker);
    const std::string second = "," + std::to_string(2 * worker + 1);
    setenv("CUDA_VISIBLE_DEVICES", (first + (lacks_a_gpu_ ? "" : second)).c_str(), 1);
    if (trial_.workers > 1 || trial_.least_workers) return;
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
  }
  void train_undisturbed_on_one() {
    trial_.gpus_per_worker.reset();
    train_undisturbed();
    trial_.gpus_per_worker = 2;
  }
  void await_two_ranks(std::size_t worker) {
    for (int i = 0; i < 12'000 && children_of(workers_[worker]).size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(children_of(workers_[worker]).size(), 2U) << content(0, "err");
  }

  bool lacks_a_gpu_ = false;
};

TEST_F(SeveralGpusTest, EachGpuIsARankAndTheCurveIsThatOfOne) {
  run_until(3);
  train_undisturbed_on_one();
  for (const std::int64_t workers : {1, 2}) {
    SCOPED_TRACE(testing::Message() << workers << " workers");
    begin(workers, "on-several-" + std::to_string(workers));
    start_all();
    EXPECT_THAT(exit_codes(), testing::Each(0)) << content(0, "err");
    expect_undisturbed();
    EXPECT_EQ(losses("world_size").back(), 2 * workers);
  }
}

TEST_F(SeveralGpusTest, FewerGpusThanTheTrialAsksForAreRefused) {
  lacks_a_gpu_ = true;
  begin(1, "lacking");
  start(0);
  EXPECT_EQ(exit_codes().front(), 2);
  EXPECT_THAT(content(0, "err"), HasSubstr("is to have 2 GPUs, but CUDA_VISIBLE_DEVICES is \"0\""));
}

TEST_F(SeveralGpusTest, SigtermStopsAllProcessesWithACheckpoint) {
  run_until(kForever);
  begin(1, "stopped");
  start(0);
  await(0, "out", "\"step\"");
  kill(workers_[0], SIGTERM);
  EXPECT_EQ(exit_codes().front(), 143) << content(0, "err");
  EXPECT_THAT(content(0, "out"), HasSubstr("\"checkpoint\""));
}

// A worker joins and leaves as a whole, so that its parent process can start it again.
TEST_F(SeveralGpusTest, AWorkerEndsAsItsProcessDidAndTheOthersGoOn) {
  train_undisturbed_on_one();
  trial_.least_workers = 1;
  begin(2, "killed");
  start_all();
  await(0, "out", "\"step\": 3");
  await_two_ranks(1);
  kill(children_of(workers_[1])[1], SIGKILL);
  EXPECT_THAT(exit_codes(), testing::ElementsAre(0, -SIGKILL)) << content(0, "err");
  EXPECT_THAT(content(1, "err"), HasSubstr("the worker's others are stopped"));
  EXPECT_THAT(content(0, "err"), HasSubstr("rank 0 of 2 workers"));
  expect_undisturbed();
}

TEST_F(SeveralGpusTest, ItsProcessesDieWithAWorker) {
  run_until(kForever);
  begin(1, "orphans");
  start(0);
  await(0, "out", "\"step\"");
  await_two_ranks(0);
  const std::vector<pid_t> ranks = children_of(workers_[0]);
  kill(workers_[0], SIGKILL);
  EXPECT_EQ(exit_codes().front(), -SIGKILL);
  for (int i = 0; i < 12'000; ++i) {
    if (kill(ranks[0], 0) != 0 && kill(ranks[1], 0) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "a process lives on";
}

}  // namespace
}  // namespace fettle::trainer
