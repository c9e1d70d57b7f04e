#include "trainer/program/worker.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/study/study_rules.h"
#include "api/trial/worker_protocol.h"
#include "base/thread.h"
#include "trainer/program/assignments.h"
#include "trainer/program/console.h"
#include "trainer/program/slot.h"
#include "trainer/program/trial_run.h"
#include "trainer/program/worker_frames.h"

namespace fettle::trainer {
namespace {

constexpr const char* kVariables[] = {"FETTLE_WORKER_FD", "FETTLE_WORKER_NONCE",
                                      "FETTLE_WORKER_VERSION", "FETTLE_WORKER_SLOTS"};

const Assignments* signalled = nullptr;  // of the only worker in this process

void on_signal(int /*number*/) { signalled->stop_all(); }

struct Start {
  int fd = -1;
  std::string nonce;
  std::int64_t slots = 1;
};

std::optional<std::int64_t> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return is_whole && number >= 0 ? std::optional(number) : std::nullopt;
}

// Reads the runner's variables, and removes them. Called before there are threads.
Result<Start> read_start(std::optional<std::int64_t> slots) {
  const auto fd = number_of(std::getenv("FETTLE_WORKER_FD"));
  const char* const nonce = std::getenv("FETTLE_WORKER_NONCE");
  const auto version = number_of(std::getenv("FETTLE_WORKER_VERSION"));
  const auto wanted = number_of(std::getenv("FETTLE_WORKER_SLOTS"));
  if (!fd || nonce == nullptr) {
    return invalid(
        "--worker: FETTLE_WORKER_FD and FETTLE_WORKER_NONCE are not set: fettle run starts workers "
        "(docs/worker-protocol.md); without --worker this program trains one trial");
  }
  if (version.value_or(api::kWorkerProtocol) < api::kWorkerProtocol) {
    return invalid("--worker: the runner speaks an older worker protocol than version " +
                   std::to_string(api::kWorkerProtocol));
  }
  Start start{static_cast<int>(*fd), nonce,
              std::clamp<std::int64_t>(slots.value_or(wanted.value_or(1)), 1, api::kMostSlots)};
  for (const char* name : kVariables) ::unsetenv(name);
  // Plans that are timed while other slots train would be wrong, and stay so in their file.
  if (start.slots > 1) ::setenv("FETTLE_CUDA_PLANS", "first", /*overwrite=*/0);
  return start;
}

Assignments::Settings settings_of(WorkerFrames& frames, std::int64_t slots) {
  Assignments::Settings settings;
  settings.most_waiting = 2 * static_cast<std::size_t>(slots);  // for the slots, and one ahead each
  settings.refuse = [&frames](const std::string& run, const std::string& reason) {
    frames.say("refuse " + run + " " + reason);
  };
  // With one slot a frame of a run that waits would part the lines of the run that trains.
  if (slots > 1) {
    settings.end_waiting = [&frames](const std::string& run) { frames.end_stopped(run); };
  }
  settings.log = log_line;
  return settings;
}

void train_in_slots(SharedBySlots& shared) {
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < shared.slots; ++i) {
    auto thread = start_thread([&shared] { Slot(shared).run(); });
    if (thread.ok()) threads.push_back(std::move(*thread));  // else runs wait for fewer slots
  }
  Slot(shared).run();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int run_worker(std::optional<std::int64_t> slots) {
  const Result<Start> start = read_start(slots);
  if (!start.ok()) return fail(start.error());
  WorkerFrames frames(STDOUT_FILENO, start->nonce);
  Assignments assignments(settings_of(frames, start->slots));
  SharedBySlots shared(frames, assignments, start->slots);
  signalled = &assignments;
  if (const Status started = assignments.start(start->fd); !started.ok()) {
    return fail(started.error());
  }
  std::signal(SIGTERM, on_signal);
  std::signal(SIGINT, on_signal);
  explain_bus_errors();
  frames.say("ready " + std::to_string(api::kWorkerProtocol) + " " + std::to_string(start->slots));
  train_in_slots(shared);
  return 0;
}

}  // namespace fettle::trainer
