#include "runtime/local/process/supervisor_client.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/thread.h"

namespace fettle::local {
namespace {

// The descriptors at which the supervisor finds its end of the socket and the lock.
constexpr int kControlFd = 3;
constexpr int kLockFd = 4;

struct Sockets {
  int ours = -1;
  int theirs = -1;
};

Result<Sockets> make_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return io_error("cannot make a socket: " + system_message(errno));
  }
  return Sockets{ends[0], ends[1]};
}

// Moves the socket out of the way of the two targets first, but not the lock: closing a duplicate
// of it in this process would drop the runner's record lock (study_lock.h).
Result<pid_t> spawn(const std::string& executable, int control, int lock) {
  const int high_control = ::fcntl(control, F_DUPFD_CLOEXEC, kLockFd + 1);
  if (high_control < 0) {
    return io_error("cannot start the supervisor " + executable + ": " + system_message(errno));
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (lock >= 0) ::posix_spawn_file_actions_adddup2(&actions, lock, kLockFd);
  ::posix_spawn_file_actions_adddup2(&actions, high_control, kControlFd);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // dup2() clears close-on-exec, so the child keeps these two; its standard error is the runner's.
  const std::string fd = std::to_string(kControlFd);
  std::array<const char*, 5> arguments = {"fettle", "supervise", "--fd", fd.c_str(), nullptr};
  pid_t pid = 0;
  const int code = ::posix_spawn(&pid, executable.c_str(), &actions, nullptr,
                                 const_cast<char* const*>(arguments.data()), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(high_control);
  if (code == EAGAIN) {
    return io_error("cannot start the supervisor: " + system_message(code) +
                    "; the limit on processes is reached: raise it (ulimit -u, pids.max of a "
                    "container), or end other programs");
  }
  if (code != 0) {
    return io_error("cannot start the supervisor " + executable + ": " + system_message(code));
  }
  return pid;
}

std::string how_it_ended(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return "the supervisor has gone";
  if (WIFSIGNALED(status)) {
    return "the supervisor was killed by signal " + std::to_string(WTERMSIG(status)) +
           "; the same command continues the Study";
  }
  return "the supervisor ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<SupervisorClient>> SupervisorClient::start(
    const std::string& executable, const std::string& study_directory, int lock_fd) {
  FETTLE_ASSIGN(const Sockets sockets, make_sockets());
  const Result<pid_t> pid = spawn(executable, sockets.theirs, lock_fd);
  ::close(sockets.theirs);
  if (!pid.ok()) {
    ::close(sockets.ours);
    return pid.error();
  }
  std::unique_ptr<SupervisorClient> client(new SupervisorClient(*pid, sockets.ours));
  SupervisorCommand hello;
  hello.study_directory = study_directory;
  hello.lock_fd = lock_fd >= 0 ? kLockFd : -1;
  // On failure the client's destructor closes the socket, which ends the supervisor.
  FETTLE_TRY(client->send(hello));
  const Result<std::string> line = client->read_line();
  if (!line.ok()) return line.error();
  const Result<SupervisorEvent> ready = read_event(*line);
  if (!ready.ok() || ready->kind != SupervisorEvent::Kind::kReady) {
    return io_error("the supervisor " + executable + " does not answer as one");
  }
  return client;
}

SupervisorClient::~SupervisorClient() {
  ::shutdown(fd_, SHUT_RDWR);
  join();
  ::close(fd_);
}

Status SupervisorClient::listen(std::function<void(const SupervisorEvent&)> on_event,
                                std::function<void(const std::string&)> on_lost) {
  on_event_ = std::move(on_event);
  on_lost_ = std::move(on_lost);
  FETTLE_ASSIGN(reader_, start_thread([this] { read_events(); }));
  return success();
}

Status SupervisorClient::send(const SupervisorCommand& command) {
  const std::string line = write_command(command);
  if (line.size() > kMaxMessageBytes) {
    return invalid("the command of " + command.trial +
                   " is too long: " + std::to_string(line.size()) + " bytes, at most " +
                   std::to_string(kMaxMessageBytes));
  }
  const std::lock_guard<std::mutex> guard(send_mutex_);
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t wrote = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_error("cannot reach the supervisor: " + system_message(errno));
    sent += static_cast<std::size_t>(wrote);
  }
  return success();
}

void SupervisorClient::join() {
  const std::lock_guard<std::mutex> guard(join_mutex_);
  if (reader_.joinable()) reader_.join();
}

Result<std::string> SupervisorClient::read_line() {
  for (;;) {
    if (const auto line = received_.take()) return std::string(*line);
    if (received_.is_too_long()) return io_error("the supervisor says too much at once");
    char bytes[64 << 10];
    const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return io_error(how_it_ended(pid_));  // waits for the supervisor's end
    received_.add({bytes, static_cast<std::size_t>(got)});
  }
}

// The unreadable message may have reported the end of a run. So the supervisor is made to stop all
// runs and to exit: then nothing waits for a run that has ended.
void SupervisorClient::give_up(const std::string& why) {
  ::shutdown(fd_, SHUT_RDWR);
  how_it_ended(pid_);
  on_lost_("the supervisor said what cannot be read: " + why);
}

void SupervisorClient::read_events() {
  for (;;) {
    const Result<std::string> line = read_line();
    if (!line.ok()) return on_lost_(line.error().message);
    const Result<SupervisorEvent> event = read_event(*line);
    if (!event.ok()) return give_up(event.error().message);
    on_event_(*event);
  }
}

}  // namespace fettle::local
