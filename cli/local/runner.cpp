#include "cli/local/runner.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "core/trial/trial_write.h"
#include "runtime/local/store/scaling.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kDiskCheckMs = 1'000;
// The time that the supervisor has to end after the third signal, and again once it was killed.
constexpr auto kSupervisorTimeout = std::chrono::seconds(2);

RunnerExit exit_for(StudyState state) {
  if (state == StudyState::kFinished) return RunnerExit::kFinished;
  return state == StudyState::kSuspended ? RunnerExit::kSuspended : RunnerExit::kInterrupted;
}

}  // namespace

Runner::Runner(local::Session& session, Interrupt& interrupt, Display& display,
               const control::Key& study)
    : session_(session),
      interrupt_(interrupt),
      display_(display),
      key_(study),
      manager_(session.store(), session.runs(), session.clock(), observer_),
      live_(display),
      done_fd_(::eventfd(0, EFD_CLOEXEC)) {}

Runner::~Runner() {
  if (done_fd_ >= 0) ::close(done_fd_);
}

Result<RunnerExit> Runner::run() {
  FETTLE_TRY(refresh());
  FETTLE_ASSIGN(std::thread worker, start_thread([this] { work(); }));
  Status seen = success();
  if (!await_work(seen)) {
    worker.detach();
    return RunnerExit::kAbandoned;
  }
  worker.join();
  if (!seen.ok()) return seen.error();
  // A retried write may have found space, and the Study its end, before the next check was due.
  if (disk_is_full_) session_.store().check_room();
  FETTLE_TRY(refresh());
  FETTLE_TRY(outcome_);
  return exit_for(study_state());
}

bool Runner::await_work(Status& seen) {
  while (!done_) {
    wait();
    on_signals(interrupt_.take());
    Status refreshed = refresh();
    if (seen.ok()) seen = std::move(refreshed);
    if (!seen.ok()) stopping_ = true;  // work() looks at it, and ends
    if (!done_ && escalate_shutdown() == Supervisor::kHangs) return false;
  }
  return true;
}

// Runs on the worker thread.
void Runner::work() {
  outcome_ = manager_.run([this] {
    return stopping_ || !session_.runs().failure().empty() || study_state() != StudyState::kActive;
  });
  const std::string failure = session_.runs().failure();
  if (outcome_.ok() && !failure.empty()) {
    outcome_ = io_error(failure + "; the same command resumes the study");
  }
  session_.shutdown();
  store_last_reports();
  done_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(done_fd_, &one, sizeof one);
}

// Runs continue to report within their grace period. Their ends stay on the disk until the Study is
// resumed; a report that cannot be stored is read again then, too.
void Runner::store_last_reports() {
  const auto study = session_.store().get_study(key_);
  const auto trials = session_.store().list_trials(key_);
  if (!study.ok() || !trials.ok()) return;
  for (const api::TrialPtr& trial : *trials) {
    const auto& records = trial->status.runs;
    if (api::is_terminal(trial->status.phase) || records.empty() || records.back().outcome)
      continue;
    const auto runs = session_.runs().observe(*trial);
    if (!runs.ok() || runs->empty() || runs->back().id != records.back().run) continue;
    api::Trial next = *trial;
    const auto& report = runs->back().report;
    if (!report || !core::take_report(*study, *report, next.status)) continue;
    (void)session_.store().update_trial_status(next);
  }
}

StudyState Runner::study_state() {
  const auto study = session_.store().get_study(key_);
  const auto trials = session_.store().list_trials(key_);
  return study.ok() && trials.ok() ? study_state_of(*study, *trials) : StudyState::kActive;
}

void Runner::wait() {
  pollfd polled[] = {{interrupt_.fd(), POLLIN, 0}, {done_fd_, POLLIN, 0}};
  ::poll(polled, 2, kRefreshIntervalMs);
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
  if (signals_ > 2 && !third_signal_) third_signal_ = Clock::now();
}

Runner::Supervisor Runner::escalate_shutdown() {
  if (!third_signal_) return supervisor_;
  const auto waited = Clock::now() - *third_signal_;
  if (supervisor_ == Supervisor::kMayAnswer && waited >= kSupervisorTimeout) {
    display_.say("the supervisor does not answer: it is killed, and with it the trials");
    ::kill(session_.runs().supervisor_pid(), SIGKILL);
    supervisor_ = Supervisor::kKilled;
  }
  if (waited >= 2 * kSupervisorTimeout) supervisor_ = Supervisor::kHangs;
  return supervisor_;
}

void Runner::apply_workers_requests() {
  for (const local::WorkersRequest& request : local::take_workers_requests(session_.layout())) {
    // Reads the trial again if another writer updates it at the same time.
    Status granted = Error{ErrorCode::kConflict, ""};
    while (!granted.ok() && granted.error().code == ErrorCode::kConflict) {
      const auto found = session_.store().get_trial({key_.ns, request.trial});
      if (!found.ok()) {
        granted = found.error();
        break;
      }
      api::Trial trial = **found;
      trial.spec.workers = request.workers;
      const auto written = session_.store().update_trial_spec(trial);
      granted = written.ok() ? success() : Status(written.error());
    }
    if (!granted.ok()) {
      display_.say("trial " + request.trial + " keeps its workers: " + granted.error().message);
    }
  }
}

void Runner::watch_disk() {
  local::SqliteStore& store = session_.store();
  const std::int64_t now_ms = session_.clock().now_ms();
  if (disk_is_full_ && now_ms >= next_disk_check_ms_) {
    store.check_room();
    next_disk_check_ms_ = now_ms + kDiskCheckMs;
  }
  const std::string no_room = store.no_room();
  const bool is_full = !no_room.empty();
  if (is_full == disk_is_full_) return;
  disk_is_full_ = is_full;
  display_.say(disk_is_full_ ? no_room +
                                   "; trials that run keep running, their results are kept "
                                   "and new ones wait until there is room"
                             : "there is room on the disk again: the study continues");
}

// Reads the store and shows changes.
Status Runner::refresh() {
  watch_disk();
  apply_workers_requests();
  FETTLE_ASSIGN(api::Study study, session_.store().get_study(key_));
  FETTLE_ASSIGN(std::vector<api::TrialPtr> trials, session_.store().list_trials(key_));
  live_.show(std::move(study), std::move(trials), session_.clock().now_ms());
  return success();
}

}  // namespace fettle::cli
