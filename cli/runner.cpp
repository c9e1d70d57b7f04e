#include "cli/runner.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "core/plan.h"

namespace fettle::cli {
namespace {

constexpr int kLookIntervalMs = 150;          // between redraws
constexpr std::size_t kMostHappenings = 100;  // kept for the screen

// Whether a trial of a suspended study has stopped.
bool rests(const api::TrialPtr& trial) {
  if (api::is_terminal(trial->status.phase)) return true;
  const api::RunRecord* run = newest_run(*trial);
  return trial->status.phase == api::TrialPhase::kPaused && (run == nullptr || run->outcome);
}

}  // namespace

Runner::Runner(local::Session& session, Interrupt& interrupt, Display& display,
               const control::Key& study)
    : session_(session),
      interrupt_(interrupt),
      display_(display),
      key_(study),
      manager_(session.store(), session.runs(), session.clock(), observer_),
      done_fd_(::eventfd(0, EFD_CLOEXEC)) {}

Runner::~Runner() {
  if (done_fd_ >= 0) ::close(done_fd_);
}

Result<Runner::Ending> Runner::run() {
  FETTLE_TRY(look());
  std::thread worker([this] { work(); });
  Status seen = success();  // the first failure to look
  while (!done_) {
    wait();
    on_signals(interrupt_.take());
    Status look_now = look();
    if (seen.ok()) seen = std::move(look_now);
    if (!seen.ok()) stopping_ = true;
  }
  worker.join();
  if (!seen.ok()) return seen.error();
  FETTLE_TRY(look());
  if (!outcome_.ok()) return outcome_.error();
  return ending();
}

// The worker thread's whole life.
void Runner::work() {
  outcome_ = manager_.run([this] {
    return stopping_ || !session_.runs().failure().empty() || ending() != Ending::kInterrupted;
  });
  const std::string failure = session_.runs().failure();
  if (outcome_.ok() && !failure.empty()) outcome_ = io_error(failure);
  session_.shutdown();
  done_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(done_fd_, &one, sizeof one);
}

Runner::Ending Runner::ending() {
  const auto study = session_.store().get_study(key_);
  if (!study.ok() || study->status.observed_generation < study->metadata.generation) {
    return Ending::kInterrupted;
  }
  if (core::is_finished(study->status)) return Ending::kFinished;
  if (!study->spec.suspend) return Ending::kInterrupted;
  const auto trials = session_.store().list_trials(key_);
  return trials.ok() && std::all_of(trials->begin(), trials->end(), rests) ? Ending::kSuspended
                                                                           : Ending::kInterrupted;
}

void Runner::wait() {
  pollfd polled[] = {{interrupt_.fd(), POLLIN, 0}, {done_fd_, POLLIN, 0}};
  ::poll(polled, 2, kLookIntervalMs);
}

void Runner::on_signals(int count) {
  if (count == 0) return;
  const bool first = signals_ == 0;
  signals_ += count;
  if (first) {
    display_.say("stopping the trials gently; once more (Ctrl-C) kills them at once");
    stopping_ = true;
    manager_.wake();
  }
  if (signals_ > 1) {
    display_.say("killing the trials");
    session_.kill();
  }
}

// Reads the store and shows what is new.
Status Runner::look() {
  FETTLE_ASSIGN(view_.study, session_.store().get_study(key_));
  FETTLE_ASSIGN(view_.trials, session_.store().list_trials(key_));
  view_.now_ms = session_.clock().now_ms();
  bring_up_to_date(view_);
  const std::vector<Happening> news = chronicle_.observe(view_.study, view_.trials);
  auto& kept = view_.happenings;
  kept.insert(kept.end(), news.begin(), news.end());
  if (kept.size() > kMostHappenings) {
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(kMostHappenings));
  }
  display_.show(view_, news);
  return success();
}

}  // namespace fettle::cli
