#include "runtime/local/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "api/trainer_config.h"
#include "base/file.h"
#include "machine/open_files.h"
#include "runtime/local/process_tree.h"

namespace fettle::local {
namespace {

constexpr auto kKillInterval = std::chrono::milliseconds(2);
// 20 s: what is left then cannot be killed (it hangs in the kernel).
constexpr int kKillRounds = 10'000;
// Whoever is killed again and again is killed for a reason.
constexpr int kMostSuccessors = 16;

struct Pipe {
  int read = -1;
  int write = -1;
};

struct Pipes {
  Pipe status;
  Pipe output;
  Pipe errors;
  Pipe ready;

  void close_ends(int Pipe::*end) {
    for (Pipe* pipe : {&status, &output, &errors, &ready}) {
      if (pipe->*end >= 0) ::close(pipe->*end);
      pipe->*end = -1;
    }
  }
};

Result<Pipes> make_pipes() {
  Pipes pipes;
  for (Pipe* pipe : {&pipes.status, &pipes.output, &pipes.errors, &pipes.ready}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      const int code = errno;
      pipes.close_ends(&Pipe::read);
      pipes.close_ends(&Pipe::write);
      return io_error("cannot make a pipe: " + system_message(code));
    }
    pipe->read = ends[0];
    pipe->write = ends[1];
    ::fcntl(pipe->read, F_SETFL, O_NONBLOCK);
  }
  return pipes;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

void send_report(int fd, const GuardReport& report) {
  // Less than PIPE_BUF, so it is written whole.
  while (::write(fd, &report, sizeof(report)) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void give_up(int status_fd, GuardReport::Failure failure) {
  GuardReport report;
  report.failure = failure;
  report.error = errno;
  send_report(status_fd, report);
  ::_exit(127);
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// With the GPUs that the file says now, where it has a line for this worker.
std::vector<std::string> environment_of(const GuardRequest& request, std::size_t rank) {
  std::vector<std::string> environment = request.environments[rank];
  if (request.gpus_file.empty()) return environment;
  const Result<std::string> text = read_file(request.gpus_file);
  if (!text.ok()) return environment;
  std::istringstream lines(*text);
  std::string line;
  for (std::size_t i = 0; i <= rank; ++i) {
    if (!std::getline(lines, line)) return environment;
  }
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(kVisible); });
  environment.push_back(std::string(kVisible) + line);
  return environment;
}

// A process of the trial's own, until exec.
[[noreturn]] void become_trial(const GuardRequest& request, std::size_t rank, const Pipes& pipes,
                               pid_t guard) {
  ::setsid();  // a group and a session of its own: no terminal, and Ctrl-C does not reach it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(127);
  reset_signals();
  machine::limit_open_files(request.open_files);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  ::dup2(rank == 0 ? pipes.output.write : pipes.errors.write, STDOUT_FILENO);
  ::dup2(pipes.errors.write, STDERR_FILENO);
  if (null > STDERR_FILENO) ::close(null);
  if (!request.directory.empty() && ::chdir(request.directory.c_str()) != 0) {
    give_up(pipes.status.write, GuardReport::kDirectory);
  }
  const std::vector<std::string> strings = environment_of(request, rank);
  std::vector<char*> environment = pointers(strings);
  const std::vector<char*> arguments = pointers(request.arguments);
  ::environ = environment.data();  // so that execvp looks at the PATH the trial will see
  ::execvp(arguments[0], arguments.data());
  give_up(pipes.status.write, GuardReport::kExec);
}

// Everything but the standard streams and what the guard needs: other runs' pipes, the socket.
void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd < static_cast<int>(from)) continue;
    if (fd > static_cast<int>(from)) ::close_range(from, static_cast<unsigned>(fd) - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(from, ~0U, 0);
}

struct Worker {
  pid_t pid = 0;  // 0: it has not begun
  bool ended = false;
  int status = 0;       // as waitpid has it, once it ended
  bool leaves = false;  // it was told to
  bool lost = false;    // it was killed, and is to have a successor
  bool runs() const { return pid != 0 && !ended; }
};

// Also one that was stopped: its peers are stopped, too.
bool ended_well(const Worker& worker) {
  constexpr int kExitAfterSigterm = 143;
  return WIFEXITED(worker.status) &&
         (WEXITSTATUS(worker.status) == 0 || WEXITSTATUS(worker.status) == kExitAfterSigterm);
}

// It says that the fault lies with another.
bool misses_others(const Worker& worker) {
  return WIFEXITED(worker.status) && WEXITSTATUS(worker.status) == api::kWorkerMissesOthers;
}

// As a pod is that is evicted; one that fails by itself would do so again.
bool was_killed(const Worker& worker) {
  return WIFSIGNALED(worker.status) && WTERMSIG(worker.status) == SIGKILL;
}

// The workers of a trial, and what their ends mean.
class Workers {
 public:
  Workers(const GuardRequest& request, const Pipes& pipes)
      : request_(request),
        pipes_(pipes),
        least_(request.least_workers),
        workers_(request.environments.size()) {
    resize(static_cast<int>(request.workers));
  }

  // Takes the ends of all that have ended, orphans too. False if there are no processes any more.
  bool reap() {
    pid_t ended = 0;
    int status = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) note(ended, status);
    return ended == 0 || errno != ECHILD;
  }

  // 0: the trial is to end.
  void resize(int wanted) {
    const auto most = static_cast<std::int64_t>(workers_.size());
    closing_ = closing_ || wanted == 0;
    if (!closing_) wanted_ = std::clamp<std::int64_t>(wanted, std::min(least_, most), most);
  }

  // Starts those that are missing, tells those to leave that are too many.
  void settle() {
    if (closing_ || is_parting()) return;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      const bool wanted = static_cast<std::int64_t>(rank) < wanted_;
      const bool is_missing = worker.pid == 0 || (worker.ended && (worker.leaves || worker.lost));
      if (wanted && is_missing) begin(rank);
      if (wanted || !worker.runs() || worker.leaves) continue;
      worker.leaves = true;
      ::kill(worker.pid, SIGTERM);
    }
  }

  bool all_ended() const { return left() == 0; }
  // The trial has ended as far as its result goes, but not yet all its workers.
  bool is_parting() const { return workers_[0].ended || decider_ > 0; }

  // The first that failed where all were needed, else worker 0.
  std::int32_t rank() const { return decider_; }
  std::int32_t wait_status() const { return workers_[static_cast<std::size_t>(decider_)].status; }

 private:
  std::int64_t left() const {
    return std::ranges::count_if(workers_, [](const Worker& worker) { return worker.runs(); });
  }

  void begin(std::size_t rank) {
    const pid_t guard = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become_trial(request_, rank, pipes_, guard);
    if (pid < 0) give_up(pipes_.status.write, GuardReport::kFork);
    workers_[rank] = {pid};
  }

  void note(pid_t pid, int status) {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      if (worker.pid != pid) continue;
      worker.ended = true;
      worker.status = status;
      if (ended_well(worker)) continue;
      if (is_parting()) {
        const Worker& decider = workers_[static_cast<std::size_t>(decider_)];
        if (decider.ended && misses_others(decider)) decider_ = static_cast<std::int32_t>(rank);
        continue;
      }
      if (left() < least_) decider_ = static_cast<std::int32_t>(rank);
      if (left() < least_ || !request_.open || !was_killed(worker)) continue;
      worker.lost = successors_++ < kMostSuccessors;
    }
  }

  const GuardRequest& request_;
  const Pipes& pipes_;
  const std::int64_t least_;
  std::vector<Worker> workers_;  // by rank, those that there can be
  std::int64_t wanted_ = 1;      // the first so many are to run
  bool closing_ = false;
  int successors_ = 0;
  std::int32_t decider_ = 0;
};

// Kills and reaps until this process has no children left. Returns how many were in the way.
int kill_all(Workers& workers) {
  int killed = 0;
  for (int round = 0; round < kKillRounds; ++round) {
    if (!workers.reap()) return killed;
    const auto found = static_cast<int>(signal_tree(::getpid(), SIGKILL));
    killed = std::max(killed, found);
    std::this_thread::sleep_for(kKillInterval);
  }
  return killed;
}

// Waits for the end of the trial, or for the order to kill it. Reaps orphans.
bool wait_for(Workers& workers, const sigset_t& signals, std::chrono::milliseconds parting_time) {
  std::optional<std::chrono::steady_clock::time_point> until;
  for (;;) {
    workers.reap();
    workers.settle();
    if (workers.all_ended()) return true;
    if (!workers.is_parting()) {
      siginfo_t info{};
      const int signal = ::sigwaitinfo(&signals, &info);
      if (signal == kGuardKillSignal) return false;
      if (signal == guard_resize_signal()) workers.resize(info.si_value.sival_int);
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!until) until = now + parting_time;
    if (now >= *until) return true;
    const auto left = std::chrono::ceil<std::chrono::nanoseconds>(*until - now).count();
    const timespec time{left / 1'000'000'000, left % 1'000'000'000};
    if (::sigtimedwait(&signals, nullptr, &time) == kGuardKillSignal) return false;
  }
}

sigset_t guard_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  ::sigaddset(&signals, kGuardKillSignal);
  ::sigaddset(&signals, guard_resize_signal());
  return signals;
}

[[noreturn]] void become_guard(const GuardRequest& request, Pipes pipes, pid_t supervisor) {
  const sigset_t signals = guard_signals();  // blocked since before the fork
  ::signal(kGuardKillSignal, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, kGuardKillSignal);
  if (::getppid() != supervisor) ::_exit(1);
  close_all_but({pipes.status.write, pipes.output.write, pipes.errors.write, pipes.ready.write,
                 request.lock_fd, request.claim_fd});

  Workers workers(request, pipes);
  workers.settle();
  if (!request.open) {  // else those that come later write there, too
    ::close(pipes.output.write);
    ::close(pipes.errors.write);
  }
  ::close(pipes.ready.write);

  GuardReport report;
  const bool ended = wait_for(workers, signals, request.parting_time);
  const int killed = kill_all(workers);
  report.rank = workers.rank();
  report.wait_status = workers.wait_status();
  report.left_behind = ended ? killed : 0;
  send_report(pipes.status.write, report);
  ::_exit(0);
}

}  // namespace

Result<Guard> start_guard(const GuardRequest& request) {
  FETTLE_ASSIGN(Pipes pipes, make_pipes());
  const pid_t supervisor = ::getpid();
  // An order that comes before the guard listens must wait for it, not be lost.
  const sigset_t signals = guard_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t pid = ::fork();
  if (pid == 0) become_guard(request, pipes, supervisor);
  const int code = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  pipes.close_ends(&Pipe::write);
  if (pid < 0) {
    pipes.close_ends(&Pipe::read);
    return io_error("cannot make a process: " + system_message(code));
  }
  return Guard{pid, pipes.status.read, pipes.output.read, pipes.errors.read, pipes.ready.read};
}

}  // namespace fettle::local
