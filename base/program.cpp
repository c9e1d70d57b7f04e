#include "base/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <thread>

#include "base/file.h"
#include "base/json.h"

extern char** environ;

namespace fettle {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr std::size_t kMaxOutput = 4 << 20;
constexpr std::chrono::milliseconds kExitPause{10};  // between two checks of whether it has exited

struct Pipe {
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(0);
    close(1);
  }
  void close(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  int ends[2] = {-1, -1};  // to read from, to write to
};

// Killed, if it still runs, when the object is destroyed.
struct Child {
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid < 0) return;
    ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_t pid = -1;
  Pipe output;
  Pipe errors;
};

std::vector<std::string> environment_of(const ProgramCall& call) {
  // The last of equal names counts, but programs take the first: only the last one stays.
  std::map<std::string, std::string> by_name;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    by_name[entry.substr(0, entry.find('='))] = entry;
  }
  for (const auto& [name, value] : call.environment) by_name[name] = name + "=" + value;
  std::vector<std::string> out;
  for (auto& [name, entry] : by_name) out.push_back(std::move(entry));
  return out;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

Status start(const ProgramCall& call, Child& child) {
  // O_CLOEXEC: another child, started at the same time, must not hold the pipes open.
  const bool piped = ::pipe2(child.output.ends, O_CLOEXEC) == 0 &&
                     (!call.keeps_errors || ::pipe2(child.errors.ends, O_CLOEXEC) == 0);
  if (!piped) return io_error("cannot be run: no pipe: " + system_message(errno));
  const std::vector<std::string> environment = environment_of(call);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, child.output.ends[1], STDOUT_FILENO);
  if (call.keeps_errors) {
    ::posix_spawn_file_actions_adddup2(&actions, child.errors.ends[1], STDERR_FILENO);
  }
  if (!call.inherits_input) {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  const int error = ::posix_spawnp(&child.pid, call.command[0].c_str(), &actions, nullptr,
                                   pointers(call.command).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  // Only the program holds these ends now: reading ends when it closes them.
  child.output.close(1);
  child.errors.close(1);
  if (error == 0) return success();
  child.pid = -1;  // nothing to kill: it may hold anything after an error
  return Error{error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
               "cannot be run: " + system_message(error)};
}

// Reads the bytes that have come; closes the pipe at its end.
void read_some(Pipe& pipe, std::string& out) {
  char buffer[4096];
  const ssize_t got = ::read(pipe.ends[0], buffer, sizeof(buffer));
  if (got > 0) out.append(buffer, static_cast<std::size_t>(got));
  if (got == 0 || (got < 0 && errno != EINTR)) pipe.close(0);
}

Error too_late(const ProgramCall& call) {
  const double seconds = static_cast<double>(call.limit.count()) / 1000;
  return invalid("did not end within " + Json(seconds).dump() + "s");
}

// Reads until the program closes its output.
Status read_output(const ProgramCall& call, Time end, Child& child, ProgramEnd& out) {
  while (child.output.ends[0] >= 0 || child.errors.ends[0] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    // poll() passes over an end that is closed, -1.
    pollfd ready[2] = {{child.output.ends[0], POLLIN, 0}, {child.errors.ends[0], POLLIN, 0}};
    const int polled = left.count() <= 0 ? 0 : ::poll(ready, 2, static_cast<int>(left.count()));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return too_late(call);  // 0: the time is over
    if (ready[0].revents != 0) read_some(child.output, out.output);
    if (ready[1].revents != 0) read_some(child.errors, out.errors);
    if (out.output.size() + out.errors.size() > kMaxOutput) {
      return invalid("printed more than 4 MiB");
    }
  }
  return success();
}

// Waits until the program exits: it may have closed its output long before.
Status await_exit(const ProgramCall& call, Time end, Child& child, ProgramEnd& out) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child.pid, &status, WNOHANG);
    // An error means that it was reaped elsewhere: its code is unknown, and counts as 0.
    if (ended == child.pid || (ended < 0 && errno != EINTR)) {
      child.pid = -1;
      out.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
      return success();
    }
    if (std::chrono::steady_clock::now() >= end) return too_late(call);
    std::this_thread::sleep_for(kExitPause);
  }
}

}  // namespace

std::string ProgramEnd::failure() const {
  if (code == 0) return "";
  const std::size_t last = errors.find_last_not_of(" \n");
  if (last != std::string::npos) return errors.substr(0, last + 1);
  return code > 0 ? "exit code " + std::to_string(code)
                  : "ended by signal " + std::to_string(-code);
}

Result<ProgramEnd> run_program(const ProgramCall& call) {
  const Time end = std::chrono::steady_clock::now() + call.limit;
  Child child;
  ProgramEnd out;
  FETTLE_TRY(start(call, child));
  FETTLE_TRY(read_output(call, end, child, out));
  FETTLE_TRY(await_exit(call, end, child, out));
  return out;
}

}  // namespace fettle
