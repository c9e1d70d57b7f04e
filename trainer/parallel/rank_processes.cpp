#include "trainer/parallel/rank_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include "api/trainer/trainer_config.h"
#include "base/file.h"

namespace fettle::trainer {
namespace {

constexpr int kTokenWords = 4;  // of 32 bits
constexpr int kSignalled = 128;

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, number);
  return set;
}

bool is_stopped(int code) { return code == kSignalled + SIGTERM || code == kSignalled + SIGINT; }

class RankProcesses {
 public:
  explicit RankProcesses(const std::function<void(const std::string&)>& log) : log_(log) {
    const sigset_t watched = watched_signals();
    sigprocmask(SIG_BLOCK, &watched, &before_);
  }
  ~RankProcesses() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  Status start(const Variables& variables, char** argv) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) become_rank(variables, argv, parent);  // does not return
    if (child > 0) {
      running_.push_back(child);
      return success();
    }
    const int code = errno;
    tell_all(SIGKILL);  // the started ones would wait for this one
    return io_error("no process for a GPU of this worker: " + system_message(code));
  }

  // Waits until all have ended.
  int watch() {
    const sigset_t watched = watched_signals();
    while (!running_.empty()) {
      const int number = sigwaitinfo(&watched, nullptr);
      if (number == SIGCHLD) take_ended();
      if (number == SIGTERM || number == SIGINT) tell_all(number);
    }
    return failed_signal_ != 0 ? end_by(failed_signal_) : failed_.value_or(stopped_);
  }

 private:
  [[noreturn]] void become_rank(const Variables& variables, char** argv, pid_t parent) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kSignalled + SIGKILL);  // the parent died before prctl
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    execv("/proc/self/exe", argv);
    std::perror("fettle-trainer: cannot start itself for a GPU of this worker");
    _exit(1);
  }

  void tell_all(int number) const {
    for (const pid_t rank : running_) kill(rank, number);
  }

  // One SIGCHLD may stand for several ended processes.
  void take_ended() {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (std::erase(running_, ended) > 0) take_end(status);
    }
  }

  void take_end(int status) {
    const bool killed = WIFSIGNALED(status);
    const int code = killed ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
    const bool stopped = !killed && is_stopped(code);
    if (stopped) stopped_ = code;
    // A rank that misses others (75) does not explain why they are gone: a later failure with
    // another code replaces its code.
    const bool explained = failed_ && *failed_ != api::kWorkerMissesOthers;
    if (code == 0 || stopped || explained) return;
    const bool first = !failed_;
    failed_ = code;
    if (killed) failed_signal_ = WTERMSIG(status);
    if (running_.empty() || !first) return;  // none is left, or all were signalled already
    log_("a process of this worker has failed with exit code " + std::to_string(code) +
         "; the worker's others are stopped");
    tell_all(SIGTERM);
  }

  // Ends this process by the signal that killed a rank, so that its parent sees the same end.
  static int end_by(int number) {
    signal(number, SIG_DFL);
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, number);
    sigprocmask(SIG_UNBLOCK, &it, nullptr);
    raise(number);
    return kSignalled + number;
  }

  const std::function<void(const std::string&)>& log_;
  sigset_t before_{};
  std::vector<pid_t> running_;
  std::optional<int> failed_;
  int failed_signal_ = 0;
  int stopped_ = 0;
};

}  // namespace

Result<Meeting> meet_on_loopback() {
  // No process holds the port until rank 0 takes it: if another process is faster, the run fails
  // and is retried like any other.
  FETTLE_ASSIGN(const Listener listener, Listener::open({"127.0.0.1", 0}));
  std::random_device entropy;
  Meeting meeting{{"127.0.0.1", listener.port()}, ""};
  for (int i = 0; i < kTokenWords; ++i) meeting.token += std::to_string(entropy()) + ".";
  return meeting;
}

Result<int> run_ranks(const std::vector<Variables>& ranks, char** argv,
                      const std::function<void(const std::string&)>& log) {
  RankProcesses processes(log);
  for (const Variables& rank : ranks) FETTLE_TRY(processes.start(rank, argv));
  return processes.watch();
}

}  // namespace fettle::trainer
