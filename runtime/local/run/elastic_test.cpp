// A run whose workers are lost, come and leave, as real processes of the built-in trainer: it
// learns the same as one undisturbed worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/test_paths.h"
#include "runtime/local/run/process_runs.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kEpochs = 150;

// An IDX file of bytes in which the class of a sample shows.
std::string idx(const std::vector<int>& dimensions) {
  std::string file = {0, 0, 8, static_cast<char>(dimensions.size())};
  int size = 1;
  for (const int dimension : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      file += static_cast<char>((dimension >> shift) & 255);
    }
    size *= dimension;
  }
  const int each = size / dimensions[0];
  for (int i = 0; i < size; ++i) {
    const int label = i / each % 4;
    file += static_cast<char>(each == 1 ? label : (i * 37 + i / 11) % 97 + 40 * label);
  }
  return file;
}

api::LayerConfig layer(api::LayerType type) {
  api::LayerConfig config;
  config.type = type;
  return config;
}

class ElasticTest : public testing::Test {
 protected:
  ElasticTest() {
    setenv("FETTLE_TRAINER", program_path("fettle-trainer").c_str(), 1);
    setenv("FETTLE_DATA_CACHE", "off", 1);
    auto opened = open_session(scratch_.path());
    EXPECT_TRUE(opened.ok());
    session_ = std::move(opened).value();
    study_.metadata.name = "s";
    study_.metadata.uid = "study-uid";
    study_.spec.objectives = {{"validation_loss", api::Direction::kMinimize, {}, api::Take::kLast}};
    study_.spec.resource = {"epoch", kEpochs, kEpochs};
    study_.spec.trial.trainer = trainer();
  }
  ~ElasticTest() override {
    unsetenv("FETTLE_TRAINER");
    unsetenv("FETTLE_DATA_CACHE");
  }

  api::TrainerConfig trainer() {
    EXPECT_TRUE(write_file(scratch_ / "images", idx({400, 8, 8})).ok());
    EXPECT_TRUE(write_file(scratch_ / "labels", idx({400})).ok());
    api::TrainerConfig config;
    config.data.train_images = scratch_ / "images";
    config.data.train_labels = scratch_ / "labels";
    config.data.validation_samples = 100;
    config.model.layers = {layer(api::LayerType::kConv), layer(api::LayerType::kRelu),
                           layer(api::LayerType::kLinear)};
    config.model.layers[0].channels = 4;
    config.model.layers[2].units = 4;
    config.training.backend = api::BackendKind::kReference;
    config.training.global_batch = 50;
    config.training.momentum = 0.9;
    config.training.learning_rate = 0.002;
    return config;
  }

  api::Trial trial(std::int64_t index, std::int64_t workers) const {
    api::Trial made = shell_trial(index);
    made.spec.workers = workers;
    made.spec.until_step = kEpochs;
    made.spec.seed = 7;  // also of the other trials: they train the same
    made.spec.parameters = Json::object();
    return made;
  }
  void start(const api::Trial& trial) {
    const Status started = session_->runs().start(study_, trial, 1);
    ASSERT_TRUE(started.ok()) << started.error().message;
  }
  core::Run observe(const api::Trial& trial) {
    const auto seen = session_->runs().observe(trial);
    return seen.ok() && !seen->empty() ? seen->front() : core::Run{};
  }
  void await_success(const api::Trial& trial) {
    ASSERT_TRUE(eventually([&] { return observe(trial).state == core::RunState::kExited; }));
    EXPECT_EQ(observe(trial).outcome, api::Outcome::kSucceeded)
        << observe(trial).reason << log(trial);
  }

  std::string log(const api::Trial& trial) const {
    const auto text = read_file(session_->layout().log_file(trial.metadata.name, 1));
    return text.ok() ? *text : "";
  }
  // Waits until the trial's log has said `said` this number of times.
  void await_said(const api::Trial& trial, const std::string& said, int times) {
    const bool came = eventually([&] {
      const std::string all = log(trial);
      int found = 0;
      for (auto at = all.find(said); at != std::string::npos; at = all.find(said, at + 1)) {
        ++found;
      }
      return found >= times;
    });
    ASSERT_TRUE(came) << "never " << said << ": " << log(trial);
  }
  // Waits until rank 0 has said `times` times that there are `workers` workers.
  void await_workers(const api::Trial& trial, int workers, int times) {
    await_said(trial, "rank 0 of " + std::to_string(workers) + " workers", times);
  }
  // Changes a running training, which stands still until `came` workers in all have come to the
  // meeting: however long they take to start, it is not over before.
  void change(const api::Trial& trial, int came, const std::function<void()>& what) {
    const pid_t first = worker(trial, 0);
    ASSERT_GT(first, 0);
    ASSERT_EQ(kill(first, SIGSTOP), 0);
    what();
    await_said(trial, "waits for the other workers", came);
    ASSERT_EQ(kill(first, SIGCONT), 0);
  }

  // The process of worker `rank`; 0 if it has none.
  pid_t worker(const api::Trial& trial, int rank) const {
    const std::string file = session_->layout().trial_file(trial.metadata.name, 1);
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto environment = read_file((entry.path() / "environ").string());
      if (!environment.ok()) continue;
      const std::string all = '\0' + *environment;
      const std::string wanted = std::string(1, '\0') + "RANK=" + std::to_string(rank) + '\0';
      const bool found = all.find(wanted) != std::string::npos;
      if (found && all.find(file) != std::string::npos) return std::stoi(entry.path().filename());
    }
    return 0;
  }

  // The losses that rank 0 printed, by epoch.
  std::vector<double> losses(const api::Trial& trial) const {
    std::vector<double> values;
    std::istringstream lines(log(trial));
    for (std::string line; std::getline(lines, line);) {
      const auto json = parse_json(line);
      if (!json.ok() || json->find("loss") == nullptr) continue;
      values.push_back(json->find("loss")->as_double());
    }
    return values;
  }

  void expect_same_curve(const api::Trial& undisturbed, const api::Trial& elastic) const {
    const std::vector<double> expected = losses(undisturbed);
    const std::vector<double> found = losses(elastic);
    ASSERT_EQ(expected.size(), static_cast<std::size_t>(kEpochs));
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-4 * expected[i]) << "of epoch " << i + 1;
    }
  }

  Scratch scratch_;
  std::unique_ptr<Session> session_;
  api::Study study_;
};

TEST_F(ElasticTest, WorkersThatAreLostComeAndLeaveDoNotChangeTheCurve) {
  const api::Trial undisturbed = trial(0, 1);
  start(undisturbed);
  await_success(undisturbed);

  study_.spec.trial.workers = {1, 4};
  const api::Trial elastic = trial(1, 2);
  start(elastic);
  await_workers(elastic, 2, 1);
  const pid_t lost = worker(elastic, 1);
  ASSERT_GT(lost, 0);
  change(elastic, 3, [&] { ASSERT_EQ(kill(lost, SIGKILL), 0); });
  await_workers(elastic, 2, 2);  // its successor has come
  EXPECT_NE(worker(elastic, 1), lost);

  change(elastic, 5, [&] { ASSERT_TRUE(session_->runs().resize(elastic, 1, 4).ok()); });
  EXPECT_EQ(observe(elastic).workers, 4);
  await_workers(elastic, 4, 1);
  ASSERT_TRUE(session_->runs().resize(elastic, 1, 3).ok());
  await_workers(elastic, 3, 1);
  await_success(elastic);

  expect_same_curve(undisturbed, elastic);
}

TEST_F(ElasticTest, WorkersMayComeAndLeaveFromTheFirstStepToTheLast) {
  const api::Trial undisturbed = trial(0, 1);
  start(undisturbed);
  await_success(undisturbed);

  study_.spec.trial.workers = {1, 3};
  const api::Trial elastic = trial(1, 1);
  start(elastic);
  ASSERT_TRUE(session_->runs().resize(elastic, 1, 3).ok());  // before it has made a step
  await_said(elastic, "\"step\": 1", 1);
  change(elastic, 3, [] {});
  await_workers(elastic, 3, 1);
  ASSERT_TRUE(eventually([&] { return losses(elastic).size() + 3 >= kEpochs; }));
  std::int64_t workers = 3;
  ASSERT_TRUE(eventually([&] {  // until it has ended
    workers = workers == 3 ? 1 : workers + 1;
    (void)session_->runs().resize(elastic, 1, workers);
    return observe(elastic).state == core::RunState::kExited;
  }));
  await_success(elastic);
  expect_same_curve(undisturbed, elastic);
}

TEST_F(ElasticTest, StoppingAnElasticRunStopsAllAndReplacesNobody) {
  study_.spec.trial.workers = {1, 3};
  study_.spec.trial.grace_period = 200;
  const api::Trial elastic = trial(0, 3);
  start(elastic);
  await_workers(elastic, 3, 1);
  ASSERT_TRUE(session_->runs().stop(elastic, 1).ok());
  ASSERT_TRUE(eventually([&] { return observe(elastic).state == core::RunState::kExited; }));
  EXPECT_EQ(observe(elastic).outcome, api::Outcome::kStopped) << observe(elastic).reason;
  EXPECT_EQ(worker(elastic, 1), 0);
}

TEST_F(ElasticTest, WithoutRoomForOthersAResizeChangesNothing) {
  study_.spec.trial.workers = {2, 2};
  const api::Trial fixed = trial(0, 2);
  start(fixed);
  await_workers(fixed, 2, 1);
  ASSERT_TRUE(session_->runs().resize(fixed, 1, 4).ok());
  await_success(fixed);
  EXPECT_THAT(log(fixed), testing::Not(HasSubstr("of 4 workers")));
}

}  // namespace
}  // namespace fettle::local
