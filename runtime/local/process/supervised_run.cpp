#include "runtime/local/process/supervised_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/file.h"
#include "machine/oom.h"
#include "machine/usable.h"
#include "runtime/local/process/outcome_file.h"
#include "runtime/sentences.h"

namespace fettle::local {
namespace {

using runtime::add_sentence;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kDrainReads = 64;  // enough for a full pipe (1 MiB at most) after the end
constexpr std::int64_t kReportIntervalMs = 100;
constexpr std::int64_t kOomIntervalMs = 5000;
constexpr std::int64_t kKillIntervalMs = 1000;  // the command to kill is repeated this often
constexpr int kLastLines = 5;
constexpr const char* kLog = "/output.log";

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Locks the claim file for the guard. The runner keeps its lock until it hears that the run has
// begun, and both locks are shared, so this one is never refused. Returns -1 without a file.
int hold_claim(const std::string& path) {
  if (path.empty()) return -1;
  int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && ::flock(fd, LOCK_SH | LOCK_NB) != 0) close_fd(fd);
  return fd;
}

// The kernel's recent kills for lack of memory, sampled and shared by all runs. A process with much
// memory takes seconds to end, so "recent" means a few seconds.
class OomWatch {
 public:
  void sample(std::int64_t now_ms) {
    if (now_ms < sampled_ms_ + kOomIntervalMs) return;
    const std::int64_t kills = machine::oom_kills();
    // No samples were taken while nothing ran, and processes killed then were not ours.
    before_ = now_ms > sampled_ms_ + 2 * kOomIntervalMs ? kills : newest_;
    newest_ = kills;
    sampled_ms_ = now_ms;
  }
  // Kills in the last 5 to 10 s in which something ran.
  std::int64_t lately() const { return sampled_ms_ == 0 ? 0 : machine::oom_kills() - before_; }

 private:
  std::int64_t before_ = 0;
  std::int64_t newest_ = 0;
  std::int64_t sampled_ms_ = 0;
};

OomWatch& oom_watch() {
  static OomWatch watch;
  return watch;
}

}  // namespace

SupervisedRun::SupervisedRun(const SupervisorCommand& command,
                             std::vector<std::vector<std::string>> environments, int lock_fd,
                             std::int64_t open_files, std::int64_t now_ms)
    : command_(command),
      started_ms_(now_ms),
      log_(command.run_directory + kLog),
      metrics_(command.metrics) {
  int claim_fd = hold_claim(command.claim_file);
  const Result<Guard> started =
      start_guard({command_, std::move(environments), lock_fd, claim_fd, open_files});
  close_fd(claim_fd);  // the guard has it now
  if (started.ok()) {
    guard_ = *started;
  } else {
    start_error_ = started.error().message;
    ended_ = true;
  }
  oom_watch().sample(now_ms);  // so that lately() ignores earlier kills
}

SupervisedRun::~SupervisedRun() {
  close_fd(guard_.status);
  close_fd(guard_.output);
  close_fd(guard_.errors);
}

void SupervisedRun::add_polls(std::vector<pollfd>& polls) const {
  for (const int fd : {guard_.output, guard_.errors, guard_.status}) {
    if (fd >= 0) polls.push_back({fd, POLLIN, 0});
  }
}

void SupervisedRun::read(std::int64_t now_ms) {
  read_stream(guard_.output, OutputMetrics::Stream::kOutput, now_ms);
  read_stream(guard_.errors, OutputMetrics::Stream::kErrors, now_ms);
  read_status(now_ms);
}

// Returns true if there may be more.
bool SupervisedRun::read_stream(int& fd, OutputMetrics::Stream stream, std::int64_t now_ms) {
  char buffer[kReadBytes];
  if (fd < 0) return false;
  const ssize_t got = ::read(fd, buffer, sizeof(buffer));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    close_fd(fd);
    return false;
  }
  const std::string_view bytes(buffer, static_cast<std::size_t>(got));
  log_.append(bytes);
  // With several workers, standard error also holds the output of all but the first.
  const bool of_others = stream == OutputMetrics::Stream::kErrors && command_.workers.size() > 1;
  if (of_others) return true;
  metrics_.feed(stream, bytes, now_ms);
  urgent_ = metrics_.take_urgent() || urgent_;
  return true;
}

// Reads the guard's report, then the end of file, which comes when the guard and all below it have
// ended.
void SupervisedRun::read_status(std::int64_t now_ms) {
  if (guard_.status < 0) return;
  char buffer[sizeof(GuardReport)];
  for (;;) {
    const ssize_t got = ::read(guard_.status, buffer, sizeof(buffer));
    if (got < 0) return;  // nothing yet
    if (got == 0) break;
    status_bytes_.append(buffer, static_cast<std::size_t>(got));
    // A failure to start comes first and counts; the guard's own report follows it.
    status_bytes_.resize(std::min(status_bytes_.size(), sizeof(GuardReport)));
  }
  close_fd(guard_.status);
  ::waitpid(guard_.pid, nullptr, 0);  // it is about to exit, or was killed
  end_.reported = status_bytes_.size() == sizeof(GuardReport);
  if (end_.reported) std::memcpy(&end_.report, status_bytes_.data(), sizeof(GuardReport));
  drain(now_ms);
  ended_ = true;
}

void SupervisedRun::drain(std::int64_t now_ms) {
  const auto drain_stream = [&](int& fd, OutputMetrics::Stream stream) {
    for (int i = 0; i < kDrainReads && read_stream(fd, stream, now_ms); ++i) {
    }
  };
  drain_stream(guard_.output, OutputMetrics::Stream::kOutput);
  drain_stream(guard_.errors, OutputMetrics::Stream::kErrors);
  close_fd(guard_.output);
  close_fd(guard_.errors);
  // The last line of a killed program, which a shell reports as 137, may end within a number.
  const int status = end_.report.wait_status;
  const bool ended_well = end_.reported && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (ended_well) metrics_.finish(now_ms);
}

void SupervisedRun::tick(std::int64_t now_ms) {
  if (ended_) return;
  oom_watch().sample(now_ms);
  if (kill_at_ms_ == 0 || now_ms < kill_at_ms_) return;
  // Unless kill() was called before: then this only repeats the command.
  end_.killed_after_grace = end_.killed_after_grace || !killing_;
  kill(end_.cause, now_ms);
}

std::int64_t SupervisedRun::wake_ms() const {
  if (ended_) return 0;
  return kill_at_ms_ > 0 ? kill_at_ms_ : std::numeric_limits<std::int64_t>::max();
}

std::int64_t SupervisedRun::report_wake_ms() const {
  if (metrics_.lines() == reported_lines_) return std::numeric_limits<std::int64_t>::max();
  return urgent_ ? 0 : reported_ms_ + kReportIntervalMs;
}

void SupervisedRun::resize(std::int64_t workers) {
  if (ended_ || !command_.open || workers < 1) return;
  sigval value{};
  value.sival_int = static_cast<int>(workers);
  (void)::sigqueue(guard_.pid, guard_resize_signal(), value);
}

void SupervisedRun::stop(StopCause cause, std::int64_t now_ms) {
  if (ended_ || kill_at_ms_ > 0) return;
  if (end_.cause == StopCause::kNone) end_.cause = cause;
  ::kill(guard_.pid, guard_stop_signal());
  kill_at_ms_ = now_ms + std::max<std::int64_t>(command_.grace_ms, 1);
}

void SupervisedRun::kill(StopCause cause, std::int64_t now_ms) {
  if (ended_) return;
  if (end_.cause == StopCause::kNone) end_.cause = cause;
  ::kill(guard_.pid, guard_kill_signal());
  killing_ = true;
  kill_at_ms_ = now_ms + kKillIntervalMs;
}

std::string SupervisedRun::no_room() const {
  if (!start_error_.empty()) return start_error_;
  // A worker that came later may have failed to begin.
  const bool began = metrics_.has_report() || !log_.last_lines(1).empty();
  if (!end_.reported || began || end_.report.failure != GuardReport::kNoRoom) return "";
  return "cannot make a process: " + system_message(end_.report.error);
}

void SupervisedRun::forget() const { ::unlink((command_.run_directory + kLog).c_str()); }

RunOutcome SupervisedRun::finish(std::int64_t now_ms) {
  log_.finish();
  end_.has_metrics = metrics_.has_report();
  end_.final_result = metrics_.report().final_result;
  end_.command = command_;
  end_.oom_kills = oom_watch().lately();
  end_.machine_memory = machine::usable_memory();
  end_.last_lines = log_.last_lines(kLastLines);
  end_.log_error = log_.error();
  RunOutcome outcome = explain(end_);
  outcome.pod_uid = command_.pod_uid;
  outcome.started_ms = started_ms_;
  outcome.ended_ms = now_ms;
  if (metrics_.has_report()) outcome.report = metrics_.report();
  outcome.silence = metrics_.silence();
  // Remarks warn that a result may not be what its user expects; any other outcome has its own
  // reason.
  const bool succeeded = outcome.outcome == api::Outcome::kSucceeded;
  if (succeeded) add_sentence(outcome.message, metrics_.remarks());
  const Status written = write_outcome_file(command_.run_directory, outcome);
  if (!written.ok()) add_sentence(outcome.message, written.error().message);
  return outcome;
}

bool SupervisedRun::report_due(std::int64_t now_ms) const { return now_ms >= report_wake_ms(); }

const api::Report& SupervisedRun::take_report(std::int64_t now_ms) {
  reported_lines_ = metrics_.lines();
  reported_ms_ = now_ms;
  urgent_ = false;
  return metrics_.report();
}

}  // namespace fettle::local
