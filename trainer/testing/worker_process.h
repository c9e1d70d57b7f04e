// fettle-trainer --worker as a child of a test, which is its runner. For tests only.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "trainer/testing/program.h"

namespace fettle::trainer {

class WorkerProcess {
 public:
  using Environment = std::map<std::string, std::string>;

  // Messages go to the file `err`.
  WorkerProcess(int slots, const std::string& err, const Environment& environment = {})
      : err_(err) {
    int in[2] = {};
    int out[2] = {};
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    const pid_t test = getpid();
    child_ = fork();
    if (child_ == 0) {
      for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
      become(test, in[0], out[1], slots);
    }
    close(in[0]);
    close(out[1]);
    assignments_ = in[1];
    output_ = out[0];
  }
  ~WorkerProcess() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      exit_code(child_);
    }
    close_assignments();
    close(output_);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void write_line(const std::string& line) {
    const std::string bytes = line + "\n";
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t some = write(assignments_, bytes.data() + at, bytes.size() - at);
      if (some < 0) return ADD_FAILURE() << "the worker reads no assignments";
      at += static_cast<std::size_t>(some);
    }
  }
  void assign(const std::string& run, const std::string& trial_file) {
    Json environment = Json::object();
    environment.set("FETTLE_TRIAL", trial_file);
    Json assignment = Json::object();
    assignment.set("run", run);
    assignment.set("environment", environment);
    write_line(assignment.dump());
  }
  void stop(const std::string& run) { write_line("{\"stop\": \"" + run + "\"}"); }
  void close_assignments() {
    if (assignments_ >= 0) close(assignments_);
    assignments_ = -1;
  }
  void terminate() const { kill(child_, SIGTERM); }

  // Reads until a line begins with `beginning` or holds it behind "@line RUN "; false: the output
  // has ended.
  bool await(const std::string& beginning) {
    for (;;) {
      for (const std::string& line : lines) {
        if (line.starts_with(beginning)) return true;
      }
      if (!read_more()) return false;
    }
  }
  // Reads until the output ends, and returns the exit code.
  int wait() {
    while (read_more()) {
    }
    const int code = exit_code(child_);
    child_ = -1;
    return code;
  }
  std::string err() const { return written_to(err_); }
  // Frames that begin with `beginning`.
  std::vector<std::string> frames(const std::string& beginning = "@") const {
    std::vector<std::string> found;
    for (const std::string& line : lines) {
      if (line.starts_with(beginning)) found.push_back(line);
    }
    return found;
  }

  // The lines of its output; a frame is "@end digits-3 0".
  std::vector<std::string> lines;

 private:
  static constexpr const char* kNonce = "0123456789abcdef0123456789abcdef";

  [[noreturn]] void become(pid_t test, int in, int out, int slots) const {
    constexpr int kFd = 9;
    dup2(in, kFd);
    setenv("FETTLE_WORKER_FD", "9", 1);
    setenv("FETTLE_WORKER_NONCE", kNonce, 1);
    setenv("FETTLE_WORKER_VERSION", "1", 1);
    setenv("FETTLE_WORKER_SLOTS", std::to_string(slots).c_str(), 1);
    become_trainer(test, "", "/dev/fd/" + std::to_string(out), err_, {"--worker"});
  }

  bool read_more() {
    pollfd ready{output_, POLLIN, 0};
    constexpr int kPatience = 240'000;  // milliseconds; suffices on the slowest machine
    if (poll(&ready, 1, kPatience) <= 0) {
      ADD_FAILURE() << "the worker is silent: " << err();
      return false;
    }
    char buffer[4096];
    const ssize_t got = read(output_, buffer, sizeof buffer);
    if (got <= 0) return false;
    unread_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = unread_.find('\n')) != std::string::npos;) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      const std::string opening = std::string("\x1e") + kNonce + " ";
      if (line.starts_with(opening)) line = "@" + line.substr(opening.size());
      lines.push_back(std::move(line));
    }
    return true;
  }

  const std::string err_;
  pid_t child_ = -1;
  int assignments_ = -1;
  int output_ = -1;
  std::string unread_;
};

}  // namespace fettle::trainer
