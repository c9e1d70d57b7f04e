#include "runtime/local/process/guard.h"

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
#include <thread>
#include <utility>

#include "api/trainer/trainer_config.h"
#include "base/file.h"
#include "base/machine/open_files.h"
#include "core/trial/endings.h"
#include "runtime/local/process/environment.h"
#include "runtime/local/process/gentle_stop.h"
#include "runtime/local/process/process_tree.h"

namespace fettle::local {
namespace {

constexpr auto kKillInterval = std::chrono::milliseconds(2);
// 20 s: processes that are left then hang in the kernel and cannot be killed.
constexpr int kKillRounds = 10'000;
// A worker that is killed again and again is killed for a reason.
constexpr int kMostReplacements = 16;
// A program that cannot be started now is tried again this often, for 30 s.
constexpr auto kStartInterval = std::chrono::milliseconds(250);
constexpr int kStartAttempts = 120;
// Intervals between checks of processes that should end: the least, the first, and the longest.
constexpr auto kLeastCheck = std::chrono::milliseconds(10);
constexpr auto kFirstCheck = std::chrono::milliseconds(20);
constexpr auto kLastCheck = std::chrono::milliseconds(200);
// The time that the other workers have to end by themselves, and to print the cause, when one has
// failed or worker 0 has ended. At most the grace period.
constexpr auto kPeerFailureGrace = std::chrono::milliseconds(5'000);
// Intervals between checks of the memory of a trial with a limit, and without one.
constexpr auto kLimitInterval = std::chrono::milliseconds(100);
constexpr auto kPeakInterval = std::chrono::milliseconds(1000);

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1;
  int write = -1;
};

struct Pipes {
  Pipe status;
  Pipe output;
  Pipe errors;

  void close_ends(int Pipe::*end) {
    for (Pipe* pipe : {&status, &output, &errors}) {
      close_fd(pipe->*end);
    }
  }
};

Result<Pipes> make_pipes() {
  Pipes pipes;
  for (Pipe* pipe : {&pipes.status, &pipes.output, &pipes.errors}) {
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

// The worker's environment, with its present GPUs if the file has a line for it.
std::vector<std::string> environment_of(const GuardRequest& request, std::size_t rank) {
  std::vector<std::string> environment = request.environments[rank];
  if (!request.command.open) return environment;
  const Result<std::string> text = read_file(gpus_file_in(request.command.run_directory));
  if (!text.ok()) return environment;
  std::istringstream lines(*text);
  std::string line;
  for (std::size_t i = 0; i <= rank; ++i) {  // the line of `rank` is the last that is read
    if (!std::getline(lines, line)) return environment;
  }
  set_variable(environment, "CUDA_VISIBLE_DEVICES", line);
  return environment;
}

// Whether the error may be gone in a moment and was not caused by the Study.
bool is_transient(int code) {
  return code == EAGAIN || code == ENOMEM || code == ETXTBSY || code == EMFILE || code == ENFILE;
}

// Returns if the program cannot be started. SIGTERM ends the waiting.
void start_program(const std::vector<char*>& arguments) {
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    ::execvp(arguments[0], arguments.data());
    if (!is_transient(errno)) return;
    const int code = errno;  // the caller reports it
    std::this_thread::sleep_for(kStartInterval);
    errno = code;
  }
}

// The worker's process, up to exec.
[[noreturn]] void become_trial(const GuardRequest& request, std::size_t rank, const Pipes& pipes,
                               pid_t guard) {
  ::setsid();  // a group and a session of its own: no terminal, and Ctrl-C does not reach it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(127);  // it died before prctl()
  reset_signals();
  machine::limit_open_files(request.open_files);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  // The output of worker 0 is the trial's and is read for metrics; the output of others is only
  // logged.
  ::dup2(rank == 0 ? pipes.output.write : pipes.errors.write, STDOUT_FILENO);
  ::dup2(pipes.errors.write, STDERR_FILENO);
  if (request.assignments_fd >= 0) ::fcntl(request.assignments_fd, F_SETFD, 0);
  if (null > STDERR_FILENO) ::close(null);
  const std::string& directory = request.command.directory;
  if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
    give_up(pipes.status.write, GuardReport::kDirectory);
  }
  const std::vector<std::string> strings = environment_of(request, rank);
  std::vector<char*> environment = pointers(strings);
  const std::vector<char*> arguments = pointers(request.command.arguments);
  ::environ = environment.data();  // so that execvp uses the PATH of the trial
  start_program(arguments);
  give_up(pipes.status.write, is_transient(errno) ? GuardReport::kNoRoom : GuardReport::kExec);
}

// Closes everything but the standard streams and the guard's own descriptors: other runs' pipes,
// the socket.
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
  int status = 0;           // as waitpid has it, once it ended
  bool stopping = false;    // it got SIGTERM because it is above the wanted number
  bool to_replace = false;  // it was killed, and will be replaced
  bool runs() const { return pid != 0 && !ended; }
};

// A worker that was stopped has ended well, too: its peers are stopped as well.
bool ended_well(const Worker& worker) {
  return WIFEXITED(worker.status) &&
         (WEXITSTATUS(worker.status) == 0 || WEXITSTATUS(worker.status) == core::kStoppedBySigterm);
}

// Whether the worker says that another worker failed first.
bool lost_a_peer(const Worker& worker) {
  return WIFEXITED(worker.status) && WEXITSTATUS(worker.status) == api::kWorkerMissesOthers;
}

// Whether the worker was killed from outside, like an evicted pod. A worker that fails by itself
// would fail again.
bool was_killed(const Worker& worker) {
  return WIFSIGNALED(worker.status) && WTERMSIG(worker.status) == SIGKILL;
}

bool ended_by_sigterm(const Worker& worker) {
  return (WIFSIGNALED(worker.status) && WTERMSIG(worker.status) == SIGTERM) ||
         (WIFEXITED(worker.status) && WEXITSTATUS(worker.status) == core::kStoppedBySigterm);
}

// The workers of a trial, and the meaning of their ends.
class Workers {
 public:
  Workers(const GuardRequest& request, const Pipes& pipes)
      : request_(request),
        pipes_(pipes),
        least_(request.command.least_workers),
        workers_(request.environments.size()) {
    resize(static_cast<int>(request.command.worker_count));
  }

  // Reaps all that have ended, adopted orphans included. False if no process is left.
  bool reap() {
    pid_t ended = 0;
    int status = 0;
    while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) note(ended, status);
    return ended == 0 || errno != ECHILD;  // 0: children are left, and none has ended
  }

  void resize(int wanted) {
    const auto most = static_cast<std::int64_t>(workers_.size());
    // With fewer than least_ the others could not continue.
    wanted_ = std::clamp<std::int64_t>(wanted, std::min(least_, most), most);
  }

  // Prevents further starts: the trial is to end.
  void close() { closing_ = true; }

  // Starts the missing workers, and stops workers above the wanted number.
  void reconcile() {
    if (closing_ || is_ending()) return;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      const bool wanted = static_cast<std::int64_t>(rank) < wanted_;
      const bool is_missing =
          worker.pid == 0 || (worker.ended && (worker.stopping || worker.to_replace));
      if (wanted && is_missing && !begin(rank)) return;  // the next call tries again
      if (wanted || !worker.runs() || worker.stopping) continue;
      worker.stopping = true;  // if it is wanted again, its successor starts once it has ended
      ::kill(worker.pid, SIGTERM);
    }
  }

  // Whether some workers could not be started; call reconcile() again.
  bool waits_for_room() const { return failed_starts_ > 0 && !closing_ && !is_ending(); }
  // errno of the start that ends the trial: too few workers run and no more are tried, or it is to
  // end before worker 0 has begun. 0: enough workers run, or may still start.
  int start_error() const {
    const bool gives_up = failed_starts_ >= kStartAttempts && running() < least_;
    return gives_up || (closing_ && deciding_worker().pid == 0) ? start_error_ : 0;
  }

  bool all_ended() const { return running() == 0 && !waits_for_room(); }
  // Whether a worker has decided the trial's result; others may still run.
  bool is_ending() const { return workers_[0].ended || deciding_rank_ > 0; }

  // The rank that decides: the first worker that failed if all were needed, else worker 0.
  std::int32_t rank() const { return deciding_rank_; }
  std::int32_t wait_status() const { return deciding_worker().status; }
  // Whether the deciding worker ended by SIGTERM; if we sent none, it came from elsewhere.
  bool decided_by_sigterm() const { return ended_by_sigterm(deciding_worker()); }

  // Kills process groups as well: /proc may miss a process that was forked a moment ago.
  void kill_groups() const {
    for (const Worker& worker : workers_) {
      if (worker.runs()) ::kill(-worker.pid, SIGKILL);
    }
  }

 private:
  const Worker& deciding_worker() const {
    return workers_[static_cast<std::size_t>(deciding_rank_)];
  }

  std::int64_t running() const {
    return std::ranges::count_if(workers_, [](const Worker& worker) { return worker.runs(); });
  }

  // Returns false if there is no room for it now.
  bool begin(std::size_t rank) {
    const pid_t guard = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become_trial(request_, rank, pipes_, guard);
    if (pid < 0) start_error_ = errno;
    failed_starts_ = pid < 0 ? failed_starts_ + 1 : 0;
    if (pid > 0) workers_[rank] = {pid};
    return pid > 0;
  }

  void note(pid_t pid, int status) {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      Worker& worker = workers_[rank];
      if (worker.pid != pid) continue;
      worker.ended = true;
      worker.status = status;
      if (ended_well(worker)) continue;  // if it is worker 0, is_ending() holds now
      // The first failure decides how the trial ended, unless that worker says that it failed
      // because others were missing: then the next failure decides. The end of worker 0 decides as
      // well, unless another worker has failed before.
      if (is_ending()) {
        const bool lost_another = deciding_worker().ended && lost_a_peer(deciding_worker());
        if (lost_another) deciding_rank_ = static_cast<std::int32_t>(rank);
        continue;
      }
      // With too few workers left the trial has failed. Otherwise it continues, and in an open
      // trial a worker that was killed from outside is replaced, like an evicted pod.
      if (running() < least_) deciding_rank_ = static_cast<std::int32_t>(rank);
      if (running() < least_ || !request_.command.open || !was_killed(worker)) continue;
      worker.to_replace = replacements_++ < kMostReplacements;
    }
  }

  const GuardRequest& request_;
  const Pipes& pipes_;
  const std::int64_t least_;
  std::vector<Worker> workers_;  // one for each possible rank
  std::int64_t wanted_ = 1;      // wanted number, from rank 0 on
  bool closing_ = false;
  int failed_starts_ = 0;  // in a row
  int start_error_ = 0;    // errno of the last failed start
  int replacements_ = 0;
  std::int32_t deciding_rank_ = 0;
};

// Kills and reaps until this process has no children left. Returns the largest number that one
// round found.
int kill_all(Workers& workers) {
  int killed = 0;
  for (int round = 0; round < kKillRounds; ++round) {
    if (!workers.reap()) return killed;
    workers.kill_groups();
    // Killed processes hand their children to this one, so later rounds may find more.
    const auto found = static_cast<int>(signal_tree(::getpid(), SIGKILL));
    killed = std::max(killed, found);
    std::this_thread::sleep_for(kKillInterval);
  }
  return killed;
}

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  return set;
}

// Blocked before the guard is forked, so no command is lost.
sigset_t guard_commands() {
  return set_of({SIGTERM, guard_resize_signal(), guard_stop_signal(), guard_kill_signal()});
}

// Returns the first of these signals, which are blocked, unless none comes in time.
std::optional<siginfo_t> wait_for_signal(const sigset_t& signals, std::chrono::nanoseconds time) {
  const timespec limit{time.count() / 1'000'000'000, time.count() % 1'000'000'000};
  siginfo_t info{};
  if (::sigtimedwait(&signals, &info, &limit) < 0) return std::nullopt;
  return info;
}

// Watches a trial from its start to its end: it ends by itself, stops gently, or is killed. Memory
// is watched here, not in the supervisor, whose loop stands still while a disk hangs.
class Watch {
 public:
  Watch(Workers& workers, const GuardRequest& request)
      : workers_(workers),
        peer_failure_grace_(
            std::min(kPeerFailureGrace, std::chrono::milliseconds(request.command.grace_ms))),
        memory_limit_(request.command.memory_limit),
        memory_interval_(memory_limit_ > 0 ? kLimitInterval : kPeakInterval),
        stop_(std::chrono::milliseconds(request.command.grace_ms)) {}

  // Returns when the remains of the trial should be killed.
  void run() {
    while (!killed_) {
      const bool some_left = workers_.reap();
      workers_.reconcile();
      const Clock::time_point now = Clock::now();
      if (workers_.start_error() != 0 || is_over(some_left, now) || is_over_memory(now)) return;
      wait();
    }
  }

  std::int64_t peak_memory() const { return peak_memory_; }
  bool was_over_memory() const { return memory_limit_ > 0 && peak_memory_ > memory_limit_; }

 private:
  // `some_left`: a process of the trial still runs, its orphans included.
  bool is_over(bool some_left, Clock::time_point now) {
    // SIGTERM from elsewhere ended the trial's own process. It may have been sent to all, and
    // others may still be saving: they get the grace period.
    const bool ended = workers_.all_ended();
    const bool orphans_left = ended && some_left && !stop_.has_begun();
    if (orphans_left && workers_.decided_by_sigterm()) on_external_sigterm(now);
    // Orphans do not keep a trial alive that has ended: kill_all() follows.
    if (!stop_.has_begun()) return ended || peer_grace_is_over(now);
    if (!some_left || stop_.is_over(now)) return true;
    // send_sigterm() reads /proc: no more often than this, however fast children end.
    if (now < signalled_at_ + kLeastCheck) return false;
    stop_.send_sigterm(now);
    signalled_at_ = now;
    return false;
  }

  bool is_over_memory(Clock::time_point now) {
    if (now < memory_at_) return false;
    peak_memory_ = std::max(peak_memory_, tree_memory(::getpid(), memory_limit_));
    memory_at_ = now + memory_interval_;
    return was_over_memory();
  }

  bool peer_grace_is_over(Clock::time_point now) {
    if (!workers_.is_ending()) return false;
    if (!peer_grace_until_) peer_grace_until_ = now + peer_failure_grace_;
    return now >= *peer_grace_until_;
  }

  void on_external_sigterm(Clock::time_point now) {
    workers_.close();
    stop_.note_external_sigterm(now);
  }

  // Commands first: in a tree that keeps forking, SIGCHLD is always pending and would hide them.
  void wait() {
    std::optional<siginfo_t> signal = take_pending_command();
    if (!signal) signal = wait_for_any(next_deadline());  // run() reaps after each return
    if (signal) handle(*signal);
    // While the trial stops, the checks become rarer until something happens.
    const Clock::duration longer = std::min<Clock::duration>(2 * check_interval_, kLastCheck);
    check_interval_ = stop_.has_begun() && !signal ? longer : kFirstCheck;
  }

  static std::optional<siginfo_t> take_pending_command() {
    return wait_for_signal(guard_commands(), Clock::duration::zero());
  }

  // Also returns when a child has ended; without a value at the deadline.
  static std::optional<siginfo_t> wait_for_any(Clock::time_point deadline) {
    sigset_t all = guard_commands();
    ::sigaddset(&all, SIGCHLD);
    return wait_for_signal(all, std::max(deadline - Clock::now(), Clock::duration::zero()));
  }

  Clock::time_point next_deadline() const {
    const Clock::time_point now = Clock::now();
    if (stop_.has_begun()) return std::min(memory_at_, now + check_interval_);
    if (workers_.waits_for_room()) return std::min(memory_at_, now + kStartInterval);
    return std::min(memory_at_, peer_grace_until_.value_or(memory_at_));
  }

  void handle(const siginfo_t& signal) {
    if (signal.si_signo == guard_kill_signal()) killed_ = true;
    if (signal.si_signo == guard_resize_signal()) workers_.resize(signal.si_value.sival_int);
    if (signal.si_signo == SIGTERM) on_external_sigterm(Clock::now());
    if (signal.si_signo != guard_stop_signal()) return;
    workers_.close();
    stop_.begin(Clock::now());
  }

  Workers& workers_;
  const std::chrono::milliseconds peer_failure_grace_;
  const std::int64_t memory_limit_;
  const std::chrono::milliseconds memory_interval_;
  Clock::time_point memory_at_ = Clock::now() + memory_interval_;  // when to check it again
  std::int64_t peak_memory_ = 0;
  std::optional<Clock::time_point> peer_grace_until_;
  GentleStop stop_;
  Clock::time_point signalled_at_{};
  Clock::duration check_interval_ = kFirstCheck;  // while the trial stops
  bool killed_ = false;
};

GuardReport report_of(const Workers& workers, const Watch& watch) {
  GuardReport report;
  if (workers.start_error() != 0) {  // of fork(), which fails only for lack of room
    report.failure = GuardReport::kNoRoom;
    report.error = workers.start_error();
  }
  report.rank = workers.rank();
  report.wait_status = workers.wait_status();
  report.over_memory = watch.was_over_memory() ? 1 : 0;
  report.peak_memory = watch.peak_memory();
  return report;
}

[[noreturn]] void become_guard(const GuardRequest& request, Pipes pipes, pid_t supervisor) {
  // All signals are blocked, and sigtimedwait() takes the commands. The trial unblocks them.
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  for (const int signal : {SIGTERM, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::prctl(PR_SET_NAME, "fettle-guard");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, guard_kill_signal());
  if (::getppid() != supervisor) ::_exit(1);  // it died before prctl()
  close_all_but({pipes.status.write, pipes.output.write, pipes.errors.write, request.lock_fd,
                 request.claim_fd, request.assignments_fd});

  Workers workers(request, pipes);
  workers.reconcile();
  // Otherwise workers that start later, of an open trial or after a lack of room, write to them.
  if (!request.command.open && !workers.waits_for_room()) {
    ::close(pipes.output.write);
    ::close(pipes.errors.write);
    // Only the program reads its assignments, so the supervisor notices when it closes them.
    if (request.assignments_fd >= 0) ::close(request.assignments_fd);
  }
  Watch watch(workers, request);
  watch.run();
  // Asked before kill_all(), which ends the rest.
  const bool ended = workers.all_ended() || workers.is_ending();
  const int killed = kill_all(workers);
  GuardReport report = report_of(workers, watch);
  report.left_behind = ended ? killed : 0;  // a trial that was killed itself leaves nothing behind
  send_report(pipes.status.write, report);
  ::_exit(0);
}

}  // namespace

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

Result<Guard> start_guard(const GuardRequest& request) {
  FETTLE_ASSIGN(Pipes pipes, make_pipes());
  const pid_t supervisor = ::getpid();
  // A command that comes before the guard listens must wait for it, not be lost.
  const sigset_t signals = guard_commands();
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
  return Guard{pid, pipes.status.read, pipes.output.read, pipes.errors.read};
}

}  // namespace fettle::local
