// Workers of one trial as real processes that meet over the loopback: the fixtures of their tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "api/trial/trial_file.h"
#include "base/json.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/program.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {

// A port of the loopback at which no process listens, and that no other program is given while this
// lives. A test's Listener can still take it: both sockets allow it (SO_REUSEADDR), and this one
// does not listen.
class ReservedPort {
 public:
  ReservedPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  ~ReservedPort() { close(fd_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  std::uint16_t number() const { return number_; }

 private:
  int fd_;
  std::uint16_t number_ = 0;
};

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

  // Begins a world of this size, with new checkpoints.
  void begin(std::int64_t world_size, const std::string& name) {
    name_ = name;
    port_.emplace();
    trial_.workers = world_size;
    trial_.checkpoints.directory = directory_.file(name);
    workers_.clear();
  }
  pid_t start(std::int64_t rank) {
    for (const char* kind : {"out", "err"}) std::remove(stream(rank, kind).c_str());
    const std::string file = stream(rank, "json");
    EXPECT_TRUE(write_file(file, api::write_trial_file(trial_).dump()).ok());
    const pid_t test = getpid();
    const pid_t child = fork();
    if (child == 0) become_worker(rank, file, test);
    workers_.push_back(child);
    return child;
  }
  // Starts a worker that joins a training under way. Rank 0 is halted until the worker is at the
  // meeting: however long it takes to start, the training is not over before.
  void start_late(std::int64_t rank) {
    kill(workers_[0], SIGSTOP);
    start(rank);
    await(rank, "err", "waits for the other workers");
    kill(workers_[0], SIGCONT);
  }
  void start_all() {
    for (std::int64_t rank = 0; rank < trial_.workers; ++rank) start(rank);
  }
  [[noreturn]] void become_worker(std::int64_t rank, const std::string& file, pid_t test) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(trial_.workers).c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", std::to_string(port_->number()).c_str(), 1);
    setenv("FETTLE_RENDEZVOUS_TOKEN", "of this test", 1);
    setenv("FETTLE_RENDEZVOUS_SECONDS", meeting_seconds_.c_str(), 1);
    set_up_gpu(rank);
    if (!folder_.empty()) (void)!chdir(folder_.c_str());
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
    ASSERT_TRUE(await_text(stream(rank, kind), text, times))
        << "rank " << rank << " never wrote " << text << " to " << kind << ": "
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
  std::string meeting_seconds_ = "240";
  std::string folder_;                // where the next worker runs; "": the test's folder
  std::optional<ReservedPort> port_;  // of this world
  std::vector<pid_t> workers_;
};

// Epochs of a training that ends only because the test ends it.
constexpr std::int64_t kForever = 1'000'000;

// Long enough to be interrupted, with repeated steps.
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

  // Leaves two of four workers; their curve must be that of one.
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
    EXPECT_THAT(content(0, "err"), testing::HasSubstr("rank 0 of 2 workers"));
    expect_undisturbed();
  }

  // Curves of one undisturbed worker.
  std::vector<double> training_;
  std::vector<double> validation_;
};

}  // namespace fettle::trainer
