#include "runtime/local/process/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/line_buffer.h"
#include "base/machine/open_files.h"
#include "core/control/clock.h"
#include "runtime/local/process/environment.h"
#include "runtime/local/process/proc_table.h"
#include "runtime/local/process/process_tree.h"
#include "runtime/local/process/run_host.h"
#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {
namespace {

// Reports wait when this much is unsent: the runner is slow, and only the newest report counts.
constexpr std::size_t kMaxBacklogBytes = 1 << 20;
constexpr std::size_t kMaxRuns = 4096;
constexpr std::int64_t kLongestSleepMs = 1000;
constexpr std::int64_t kStrayIntervalMs = 10;
constexpr std::int64_t kStrayTimeoutMs = 20'000;  // processes left after that hang in the kernel
constexpr int kExitEnvironment = 3;

void set_all(const Variables& variables, std::vector<std::string>& environment) {
  for (const auto& [name, value] : variables) set_variable(environment, name, value);
}

// The environment of each worker: inherited variables, then the command's.
std::vector<std::vector<std::string>> environments_of(const SupervisorCommand& command) {
  std::vector<std::string> common = inherited_environment(command.pass_environment);
  set_all(command.environment, common);
  std::vector<std::vector<std::string>> environments(
      std::max<std::size_t>(command.workers.size(), 1), common);
  for (std::size_t rank = 0; rank < command.workers.size(); ++rank) {
    set_all(command.workers[rank], environments[rank]);
  }
  return environments;
}

class Supervisor {
 public:
  // `open_files`: the soft limit of trials.
  Supervisor(int control_fd, std::int64_t open_files)
      : control_(control_fd), open_files_(open_files) {}

  int run() {
    while (!done()) {
      const std::vector<RunHost*> ready = wait();
      const std::int64_t now = clock_.now_ms();
      for (RunHost* host : ready) host->read(now);  // notes the ends that collect() reports
      receive(now);
      for (const auto& host : hosts_) host->tick(now);
      collect(now);
      report(now);
      send();
    }
    return failure_.empty() ? 0 : kExitEnvironment;
  }

 private:
  bool done() const {
    return (control_ < 0 || (shutdown_ && outgoing_.empty())) && hosts_.empty() && !has_strays();
  }

  bool backlogged() const { return outgoing_.size() > kMaxBacklogBytes; }

  // Sleeps until there is work. Returns the hosts whose processes have something to read.
  std::vector<RunHost*> wait() {
    std::vector<pollfd> polls;
    std::vector<RunHost*> owners;  // of each of `polls`
    const std::int64_t now = clock_.now_ms();
    std::int64_t wake = now + (has_strays() ? kStrayIntervalMs : kLongestSleepMs);
    for (const auto& host : hosts_) {
      host->add_polls(polls);
      owners.resize(polls.size(), host.get());  // the new polls are this host's
      // With a backlog it is the runner that wakes the loop, by reading.
      wake = std::min(wake, host->wake_ms(/*with_reports=*/!backlogged()));
    }
    const short events = static_cast<short>(POLLIN | (outgoing_.empty() ? 0 : POLLOUT));
    // The last, without an owner: receive() and send() are called in any case.
    if (control_ >= 0) polls.push_back({control_, events, 0});
    ::poll(polls.data(), polls.size(), static_cast<int>(std::max<std::int64_t>(wake - now, 0)));
    std::vector<RunHost*> ready;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const bool again = !ready.empty() && ready.back() == owners[i];  // another poll of that host
      if (polls[i].revents != 0 && !again) ready.push_back(owners[i]);
    }
    return ready;
  }

  void receive(std::int64_t now) {
    char buffer[64 << 10];
    while (control_ >= 0) {
      const ssize_t got = ::recv(control_, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) return lose_runner(now);  // end of file, or an error
      incoming_.add({buffer, static_cast<std::size_t>(got)});
      handle_all(now);
    }
  }

  void handle_all(std::int64_t now) {
    while (const auto line = incoming_.take()) {
      const Result<SupervisorCommand> command = read_command(std::string(*line));
      if (!command.ok()) return fail("unreadable command: " + command.error().message, now);
      handle(*command, now);
    }
    if (incoming_.is_too_long()) fail("a command is too long", now);
  }

  void handle(const SupervisorCommand& command, std::int64_t now) {
    RunHost* const host = host_of(key_of(command));
    switch (command.kind) {
      case SupervisorCommand::Kind::kHello:
        return handle_hello(command);
      case SupervisorCommand::Kind::kStart:
        return start(command, now);
      case SupervisorCommand::Kind::kAssign:
        return assign(command);
      case SupervisorCommand::Kind::kEndWorker:
        if (RunHost* const worker = worker_of(command.worker)) worker->finish_worker(now);
        return;
      case SupervisorCommand::Kind::kStop:
        if (host != nullptr) host->stop_run(key_of(command), now);
        return;
      case SupervisorCommand::Kind::kResize:
        if (host != nullptr) host->resize(command.worker_count);
        return;
      case SupervisorCommand::Kind::kShutdown:
        shutdown_ = true;
        for (const auto& each : hosts_) each->stop(StopCause::kShutdown, now);
        return;
      case SupervisorCommand::Kind::kKill:
        for (const auto& each : hosts_) each->kill(StopCause::kShutdown, now);
        return;
    }
  }

  // First removes the processes that an earlier runner and supervisor, both killed, left behind.
  void handle_hello(const SupervisorCommand& command) {
    lock_ = static_cast<int>(command.lock_fd);
    if (lock_ >= 0) ::fcntl(lock_, F_SETFD, FD_CLOEXEC);
    sweep(command.study_directory);
    const std::string trouble = trouble_with_proc();
    if (!trouble.empty()) std::fprintf(stderr, "fettle: %s\n", trouble.c_str());
    SupervisorEvent ready;
    ready.kind = SupervisorEvent::Kind::kReady;
    queue_event(ready);
  }

  // The host of a run; null if it is not known.
  RunHost* host_of(const RunKey& run) const {
    const auto found =
        std::ranges::find_if(hosts_, [&](const auto& host) { return host->has(run); });
    return found == hosts_.end() ? nullptr : found->get();
  }

  RunHost* worker_of(std::int64_t number) const {
    const auto found =
        std::ranges::find_if(hosts_, [&](const auto& host) { return host->worker() == number; });
    return number == 0 || found == hosts_.end() ? nullptr : found->get();
  }

  void start(const SupervisorCommand& command, std::int64_t now) {
    const RunKey key = key_of(command);
    if (host_of(key) != nullptr || shutdown_) return;
    if (hosts_.size() >= kMaxRuns) {
      return refuse(key, "one supervisor runs " + std::to_string(kMaxRuns) + " trials at most");
    }
    // Forks the guard. If there is no room for the process, collect() refuses the run.
    SupervisorEvent started = event_of(SupervisorEvent::Kind::kStarted, key);
    started.started_ms = now;
    auto host = std::make_unique<RunHost>(
        command, environments_of(command), lock_, open_files_,
        [this](const SupervisorEvent& event) { queue_event(event); }, now);
    // A process that cannot be made has ended: collect() refuses its run.
    if (!host->ended()) queue_event(started);
    hosts_.push_back(std::move(host));
  }

  void assign(const SupervisorCommand& command) {
    const RunKey key = key_of(command);
    if (host_of(key) != nullptr) return;
    RunHost* const worker = worker_of(command.worker);
    if (worker == nullptr || worker->ended() || shutdown_) {
      return refuse(key, "its worker has ended");
    }
    worker->assign(command);
  }

  void refuse(const RunKey& key, const std::string& reason) {
    SupervisorEvent event = event_of(SupervisorEvent::Kind::kRefused, key);
    event.reason = reason;
    queue_event(event);
  }

  void collect(std::int64_t now) {
    bool guard_lost = false;
    for (const auto& host : hosts_) {
      // One cause of a disruption is a guard that was killed; then the trial may have left orphans.
      if (host->ended()) guard_lost = host->collect(now) || guard_lost;
    }
    std::erase_if(hosts_, [](const auto& host) { return host->ended(); });
    if (guard_lost) strays_until_ms_ = now + kStrayTimeoutMs;
    // Without any stray in this round, none is left.
    if (has_strays() && (now >= strays_until_ms_ || !kill_strays())) strays_until_ms_ = 0;
  }

  bool has_strays() const { return strays_until_ms_ > 0; }

  // A guard that was killed from outside leaves its orphans to this process, as a subreaper.
  // Returns true if there were any; then there may be more, forked or left behind by a process that
  // ended meanwhile.
  bool kill_strays() {
    bool found = false;
    const auto is_guard = [&](pid_t pid) {
      return std::ranges::any_of(hosts_, [&](const auto& host) { return host->guard() == pid; });
    };
    for (const pid_t pid : children(::getpid())) {
      if (is_guard(pid)) continue;
      found = true;
      signal_tree(pid, SIGKILL);
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);
    }
    return found;
  }

  void report(std::int64_t now) {
    for (const auto& host : hosts_) {
      if (backlogged()) return;  // a report waits, and a newer one replaces it
      host->report(now);
    }
  }

  void queue_event(const SupervisorEvent& event) {
    if (control_ >= 0) outgoing_ += write_event(event);
  }

  void send() {
    std::size_t sent = 0;
    while (control_ >= 0 && sent < outgoing_.size()) {
      const ssize_t wrote = ::send(control_, outgoing_.data() + sent, outgoing_.size() - sent,
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno == EAGAIN) break;
      if (wrote < 0) {
        lose_runner(clock_.now_ms());
        return;
      }
      sent += static_cast<std::size_t>(wrote);
    }
    outgoing_.erase(0, sent);
  }

  void lose_runner(std::int64_t now) {
    ::close(control_);
    control_ = -1;
    outgoing_.clear();  // outcome.json keeps the ends of runs
    const StopCause cause = shutdown_ ? StopCause::kShutdown : StopCause::kRunnerGone;
    for (const auto& host : hosts_) host->stop(cause, now);
  }

  void fail(const std::string& what, std::int64_t now) {
    failure_ = what;
    std::fprintf(stderr, "fettle supervise: %s\n", what.c_str());
    incoming_.clear();
    lose_runner(now);
  }

  int control_;
  const std::int64_t open_files_;
  int lock_ = -1;
  control::SystemClock clock_;
  LineBuffer incoming_{kMaxMessageBytes};
  std::string outgoing_;
  std::vector<std::unique_ptr<RunHost>> hosts_;
  bool shutdown_ = false;
  std::int64_t strays_until_ms_ = 0;  // when to give up killing strays; 0: none is left
  std::string failure_;
};

}  // namespace

int run_supervisor(int control_fd) {
  ::setsid();  // Ctrl-C in the terminal is for the runner alone
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);  // it ends when its runner does, after the trials
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // were it ignored, the kernel would reap guards unasked
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    std::fprintf(stderr, "fettle supervise: %s\n", system_message(errno).c_str());
    return kExitEnvironment;
  }
  ::prctl(PR_SET_NAME, "fettle-supervis");  // the kernel keeps 15 characters
  ::fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  return Supervisor(control_fd, machine::raise_open_files()).run();
}

}  // namespace fettle::local
