// Runs that share one machine, as real processes: elastic trials, several Studies, and the messages
// while there is no room.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "runtime/local/process/guard.h"
#include "runtime/local/process/supervisor_client.h"
#include "runtime/local/testing/process_test.h"

namespace fettle::local {
namespace {

using api::Outcome;
using testing::HasSubstr;

class SharingTest : public testing::Test {
 protected:
  // The most GPUs that any test here asks for; the room decides which of them exist.
  SharingTest() { ::setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1); }
  ~SharingTest() override { ::unsetenv("CUDA_VISIBLE_DEVICES"); }

  static Room room_of(int gpus, double cores = 100) {
    Room room;
    for (int i = 0; i < gpus; ++i) {
      room.gpus.push_back({"GPU-" + std::to_string(i), std::to_string(i)});
    }
    room.cores = cores;
    return room;
  }

  std::unique_ptr<Session> open(const std::string& study, const Room& room) {
    SessionOptions options = session_options(scratch_.path(), study);
    options.room = room;
    options.trainer = scratch_ / "trainer";
    auto opened = Session::open(options);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }

  // Records its GPUs, and waits for a file called `go`.
  std::string waiting_script() const {
    return "echo \"$RANK:$CUDA_VISIBLE_DEVICES\" >> " + scratch_.path() + "/gpus; while [ ! -e " +
           scratch_.path() + "/go ]; do sleep 0.02; done; echo '{\"step\": 1, \"loss\": 1}'";
  }
  api::Study waiting_study(std::int64_t gpus) const {
    api::Study study = shell_study(waiting_script());
    study.spec.trial.gpu.emplace().count = gpus;
    study.spec.trial.grace_period = 200;
    return study;
  }
  // The same script in the place of the built-in trainer, because only that is elastic.
  api::Study elastic_study() const {
    const std::string program = scratch_ / "trainer";
    EXPECT_TRUE(write_file(program, "#!/bin/sh\n" + waiting_script() + "\n").ok());
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    api::Study study = waiting_study(1);
    study.spec.trial.pod_template = {};
    api::TrainerConfig config;
    config.data.train_images = "images";
    config.data.train_labels = "labels";
    config.model.layers.resize(1);
    config.model.layers[0].type = api::LayerType::kLinear;
    config.model.layers[0].units = 4;
    config.training.global_batch = 64;
    study.spec.trial.trainer = config;
    study.spec.trial.workers = {1, 4};
    study.spec.resource = {"epoch", 1, 1};
    return study;
  }

  static api::Trial trial_of(std::int64_t index) {
    api::Trial trial = shell_trial(index);
    trial.spec.parameters = Json::object();
    trial.spec.workers = 1;
    trial.spec.until_step = 1;
    return trial;
  }
  static core::Run observe(Session& session, std::int64_t index = 0) {
    const auto seen = session.runs().observe(shell_trial(index));
    return seen.ok() && !seen->empty() ? seen->front() : core::Run{};
  }
  static bool await(Session& session, core::RunState state, std::int64_t index = 0) {
    return eventually([&] { return observe(session, index).state == state; });
  }
  std::vector<std::string> lines() const {
    const auto text = read_file(scratch_ / "gpus");
    std::vector<std::string> all;
    std::istringstream in(text.ok() ? *text : "");
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  void go() const { ASSERT_TRUE(write_file(scratch_ / "go", "").ok()); }

  Scratch scratch_;
};

TEST_F(SharingTest, FourElasticTrialsOnFourGpusRunAllAtOnce) {
  const auto session = open("s", room_of(4));
  const api::Study study = elastic_study();
  EXPECT_EQ(session->runs().capacity(study).trials, 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    const Status started = session->runs().start(study, trial_of(i), 1);
    ASSERT_TRUE(started.ok()) << started.error().message;
  }
  ASSERT_TRUE(eventually([&] { return lines().size() == 4; })) << lines().size();
  const std::vector<std::string> given = lines();
  EXPECT_EQ(std::set<std::string>(given.begin(), given.end()).size(), 4U) << "one each";
  go();
  for (std::int64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(await(*session, core::RunState::kExited, i));
    EXPECT_EQ(observe(*session, i).outcome, Outcome::kSucceeded) << observe(*session, i).reason;
  }
}

TEST_F(SharingTest, AWorkerThatComesLaterHasAGpuThatNobodyElseHas) {
  const auto session = open("s", room_of(3));
  const api::Study study = elastic_study();
  api::Trial first = trial_of(0);
  ASSERT_TRUE(session->runs().start(study, first, 1).ok());
  ASSERT_TRUE(session->runs().start(study, trial_of(1), 1).ok());
  ASSERT_TRUE(eventually([&] { return lines().size() == 2; }));
  ASSERT_TRUE(session->runs().resize(first, 1, 2).ok());
  ASSERT_TRUE(eventually([&] { return lines().size() == 3; }));
  EXPECT_EQ(lines()[2], "1:2") << "rank 1 has the GPU that was left";
  ASSERT_TRUE(session->runs().resize(first, 1, 3).ok()) << "to wait for a GPU is no error";
  EXPECT_EQ(
      observe(*session).reason,
      "trial s-0 cannot have 3 workers now: it needs 1 GPU, and 0 of 3 are free (study s: 3)");
  EXPECT_EQ(observe(*session).workers, 2);
  EXPECT_EQ(observe(*session).unplaced_workers, 1);
  ASSERT_TRUE(session->runs().resize(first, 1, 2).ok());
  EXPECT_EQ(observe(*session).reason, "");
  EXPECT_EQ(observe(*session).unplaced_workers, 0);
  go();
  EXPECT_TRUE(await(*session, core::RunState::kExited, 0));
  EXPECT_TRUE(await(*session, core::RunState::kExited, 1));
}

// The GPUs are claimed nevertheless: the next call writes them.
TEST_F(SharingTest, GpusThatCouldNotBeWrittenDownAreWrittenWhenAskedAgain) {
  const auto session = open("s", room_of(2));
  const api::Trial trial = trial_of(0);
  ASSERT_TRUE(session->runs().start(elastic_study(), trial, 1).ok());
  ASSERT_TRUE(eventually([&] { return lines().size() == 1; }));
  const std::string file = gpus_file_in(session->layout().run_directory(trial.metadata.name, 1));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_FALSE(session->runs().resize(trial, 1, 2).ok());
  std::filesystem::remove(file);
  ASSERT_TRUE(session->runs().resize(trial, 1, 2).ok());
  const auto written = read_file(file);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(*written, "0\n1\n");
  ASSERT_TRUE(eventually([&] { return lines().size() == 2; }));
  EXPECT_EQ(lines()[1], "1:1") << "rank 1 has the GPU that was left";
  go();
  EXPECT_TRUE(await(*session, core::RunState::kExited));
}

TEST_F(SharingTest, ARunThatShrinksAndGrowsAgainHoldsNoMoreCoresThanBefore) {
  const auto session = open("s", room_of(0));
  api::Study study = elastic_study();
  study.spec.trial.gpu.reset();
  const api::Trial trial = trial_of(0);
  ASSERT_TRUE(session->runs().start(study, trial, 1).ok());
  ASSERT_TRUE(await(*session, core::RunState::kRunning));
  // The claim as written: a reader counts no more cores than the machine has.
  const auto cores = [&] {
    double sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "machine")) {
      if (entry.path().extension() != ".claim") continue;
      const Json claim = parse_json(read_file(entry.path()).value()).value();
      sum += claim.find("cores")->as_double();
    }
    return sum;
  };
  const double of_one = cores();
  EXPECT_GT(of_one, 0);
  for (const std::int64_t workers : {4, 1, 3, 2, 4}) {
    ASSERT_TRUE(session->runs().resize(trial, 1, workers).ok());
    EXPECT_EQ(cores(), 4 * of_one) << workers;
  }
  go();
  EXPECT_TRUE(await(*session, core::RunState::kExited));
}

TEST_F(SharingTest, TwoStudiesOnTwoGpusNeverHaveTheSame) {
  const auto one = open("one", room_of(2));
  const auto two = open("two", room_of(2));
  const api::Study study = waiting_study(1);
  for (Session* session : {one.get(), two.get()}) {
    for (std::int64_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(session->runs().start(study, shell_trial(i), 1).ok());
    }
  }
  ASSERT_TRUE(await(*one, core::RunState::kRunning, 0));
  ASSERT_TRUE(await(*one, core::RunState::kRunning, 1));
  ASSERT_TRUE(eventually([&] { return lines().size() == 2; }));
  for (std::int64_t i = 0; i < 2; ++i) {
    const core::Run waits = observe(*two, i);
    EXPECT_EQ(waits.state, core::RunState::kPending);
    EXPECT_THAT(waits.reason, HasSubstr("it needs 1 GPU, and 0 of 2 are free (study one: 2)"));
    EXPECT_FALSE(read_file(two->layout().trial_file("s-" + std::to_string(i), 1)).ok());
  }
  go();
  for (Session* session : {one.get(), two.get()}) {
    for (std::int64_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(await(*session, core::RunState::kExited, i));
      EXPECT_EQ(observe(*session, i).outcome, Outcome::kSucceeded) << observe(*session, i).reason;
    }
  }
  const std::vector<std::string> given = lines();
  ASSERT_EQ(given.size(), 4U);
  EXPECT_NE(given[0], given[1]);
}

TEST_F(SharingTest, TheGpusOfAKilledRunnerAreKeptUntilItsTrialsAreGone) {
  const auto two = open("two", room_of(1));
  {
    const auto one = open("one", room_of(1));
    ASSERT_TRUE(one->runs().start(waiting_study(1), shell_trial(), 1).ok());
    ASSERT_TRUE(await(*one, core::RunState::kRunning));
    ASSERT_TRUE(two->runs().start(waiting_study(1), shell_trial(), 1).ok());
    EXPECT_EQ(observe(*two).state, core::RunState::kPending);
    one->kill();
  }
  EXPECT_TRUE(await(*two, core::RunState::kRunning));
  go();
  EXPECT_TRUE(await(*two, core::RunState::kExited));
}

TEST_F(SharingTest, OneThatWaitsCanBeStoppedAndIsForgottenWhenTheRunnerEnds) {
  const auto one = open("one", room_of(1));
  auto two = open("two", room_of(1));
  ASSERT_TRUE(one->runs().start(waiting_study(1), shell_trial(), 1).ok());
  ASSERT_TRUE(await(*one, core::RunState::kRunning));
  for (std::int64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(two->runs().start(waiting_study(1), shell_trial(i), 1).ok());
  }
  ASSERT_TRUE(two->runs().stop(shell_trial(0), 1).ok());
  EXPECT_EQ(observe(*two, 0).outcome, Outcome::kStopped);
  EXPECT_EQ(observe(*two, 0).reason, "stopped before it began");
  EXPECT_EQ(observe(*two, 1).state, core::RunState::kPending);
  two->shutdown();
  two.reset();
  two = open("two", room_of(1));
  EXPECT_EQ(observe(*two, 1).id, 0) << "it was not disrupted: it never was";
  go();
}

TEST_F(SharingTest, OnlyARunThatBeganWasKilled) {
  const auto session = open("s", room_of(0));
  const std::string directory = session->layout().run_directory("s-0", 1);
  ASSERT_TRUE(make_directories(directory).ok());
  ASSERT_TRUE(write_file(session->layout().trial_file("s-0", 1), "{}").ok());
  EXPECT_EQ(observe(*session).id, 0);
  ASSERT_TRUE(write_file(session->layout().log_file("s-0", 1), "").ok());
  EXPECT_EQ(observe(*session).outcome, Outcome::kDisrupted);
  EXPECT_THAT(observe(*session).reason, HasSubstr("its supervisor was killed while it ran"));
}

TEST_F(SharingTest, CoresOfAllStudiesAreCounted) {
  const auto one = open("one", room_of(0, 2));
  const auto two = open("two", room_of(0, 2));
  api::Study study = waiting_study(1);
  study.spec.trial.gpu.reset();
  ASSERT_TRUE(one->runs().start(study, shell_trial(0), 1).ok());
  ASSERT_TRUE(two->runs().start(study, shell_trial(0), 1).ok());
  ASSERT_TRUE(two->runs().start(study, shell_trial(1), 1).ok());
  ASSERT_TRUE(await(*two, core::RunState::kRunning, 0));
  EXPECT_THAT(observe(*two, 1).reason,
              HasSubstr("it needs 1 core, and 0 of 2 are free (study one: 1, study two: 1)"));
  go();
  EXPECT_TRUE(await(*two, core::RunState::kExited, 1));
}

// ---- Files and processes -----------------------------------------------------------------------

// Sets a limit of this process for the life of the object.
class Limit {
 public:
  Limit(__rlimit_resource what, rlim_t soft, rlim_t hard) : what_(what) {
    ::getrlimit(what, &before_);
    const struct rlimit limit { soft, std::min(hard, before_.rlim_max) };
    ::setrlimit(what, &limit);
  }
  ~Limit() { ::setrlimit(what_, &before_); }

 private:
  const __rlimit_resource what_;
  rlimit before_{};
};

TEST_F(SharingTest, TheSoftLimitOnOpenFilesHoldsNobodyBack) {
  std::unique_ptr<Session> session;
  {
    const Limit few(RLIMIT_NOFILE, 40, RLIM_INFINITY);
    session = open("s", room_of(0));
  }
  api::Study study = waiting_study(1);
  study.spec.trial.gpu.reset();
  const std::string& root = scratch_.path();
  api::Study telling = shell_study("ulimit -n > " + root + "/limit; echo '{\"loss\": 1}'");
  ASSERT_TRUE(session->runs().start(telling, shell_trial(99), 1).ok());
  for (std::int64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(session->runs().start(study, shell_trial(i), 1).ok());
  }
  EXPECT_TRUE(eventually([&] { return lines().size() == 20; })) << lines().size();
  go();
  for (std::int64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(await(*session, core::RunState::kExited, i));
    EXPECT_EQ(observe(*session, i).outcome, Outcome::kSucceeded) << observe(*session, i).reason;
  }
  EXPECT_EQ(read_file(scratch_ / "limit").value(), "40\n") << "programs have what the shell gave";
}

TEST_F(SharingTest, WhatTheSupervisorHasNoFilesForWaits) {
  api::Study study = waiting_study(1);
  study.spec.trial.gpu.reset();
  std::unique_ptr<Session> session;
  {
    // The limit applies to the supervisor alone, as when it was misjudged.
    const std::string limited = scratch_ / "limited";
    ASSERT_TRUE(write_file(limited, "#!/bin/sh\nulimit -n 40\nexec " +
                                        std::filesystem::read_symlink("/proc/self/exe").string() +
                                        " \"$@\"\n")
                    .ok());
    std::filesystem::permissions(limited, std::filesystem::perms::owner_all);
    SessionOptions options = session_options(scratch_.path());
    options.executable = limited;
    auto opened = Session::open(options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    session = std::move(opened).value();
  }
  for (std::int64_t i = 0; i < 12; ++i) {
    ASSERT_TRUE(session->runs().start(study, shell_trial(i), 1).ok());
  }
  EXPECT_TRUE(eventually([&] {
    for (std::int64_t i = 0; i < 12; ++i) {
      if (observe(*session, i).reason.find("Too many open files") != std::string::npos) return true;
    }
    return false;
  }));
  go();
  for (std::int64_t i = 0; i < 12; ++i) {
    ASSERT_TRUE(await(*session, core::RunState::kExited, i)) << observe(*session, i).reason;
    EXPECT_EQ(observe(*session, i).outcome, Outcome::kSucceeded) << observe(*session, i).reason;
  }
}

// There are descriptors for the socket, but none for the number at which the supervisor finds it.
TEST_F(SharingTest, ASupervisorThatCannotGetItsSocketIsNotStarted) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> taken;  // all below the two that come last
  while (taken.size() < 8) taken.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto last = static_cast<rlim_t>(taken.back());
  ::close(taken[6]);
  ::close(taken[7]);
  const rlimit tight{last + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const auto started = SupervisorClient::start("/bin/true", scratch_.path(), -1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  taken.resize(6);
  for (const int fd : taken) ::close(fd);
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message,
              HasSubstr("cannot start the supervisor /bin/true: Too many open files"));
}

TEST_F(SharingTest, AsManyRunAsThereAreFilesFor) {
  Room room = room_of(0);
  room.runs = 2;
  const auto session = open("s", room);
  api::Study study = waiting_study(1);
  study.spec.trial.gpu.reset();
  EXPECT_EQ(session->runs().capacity(study).trials, 2);
  for (std::int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(session->runs().start(study, shell_trial(i), 1).ok());
  }
  EXPECT_THAT(observe(*session, 2).reason, HasSubstr("(ulimit -Hn) is enough for 2 trials"));
  go();
  EXPECT_TRUE(await(*session, core::RunState::kExited, 2));
}

}  // namespace
}  // namespace fettle::local
