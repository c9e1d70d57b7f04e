// fettle-trainer as a child of a test. For tests only.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/test_paths.h"

namespace fettle::trainer {

// In the child that `test` has forked: becomes the program, with FETTLE_TRIAL set to `trial_file`
// and its output in files. It dies with the test.
[[noreturn]] inline void become_trainer(pid_t test, const std::string& trial_file,
                                        const std::string& out, const std::string& err,
                                        const std::vector<std::string>& options = {}) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != test) _exit(127);  // the test died before prctl
  (void)!freopen(out.c_str(), "w", stdout);
  (void)!freopen(err.c_str(), "w", stderr);
  setenv("FETTLE_TRIAL", trial_file.c_str(), 1);
  setenv("FETTLE_DATA_CACHE", "off", 1);
  const std::string program = program_path("fettle-trainer");
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& option : options) {
    arguments.push_back(const_cast<char*>(option.c_str()));
  }
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  _exit(127);
}

// Waits for the child's end; returns minus the signal's number if a signal killed it.
inline int exit_code(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Runs the program without a trial file to its end, and returns its exit code.
inline int run_trainer(const std::string& out, const std::string& err,
                       const std::vector<std::string>& options) {
  const pid_t test = getpid();
  const pid_t child = fork();
  if (child == 0) become_trainer(test, "", out, err, options);
  return exit_code(child);
}

// The output so far: "" if the child has not started.
inline std::string written_to(const std::string& path) {
  const auto read = read_file(path);
  return read.ok() ? *read : "";
}

// Waits until `text` occurs `times` times. Returns false after a time that suffices on the slowest
// machine.
inline bool await_text(const std::string& path, const std::string& text, int times = 1) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
  for (;;) {
    const std::string all = written_to(path);
    int found = 0;
    for (auto at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    if (found >= times) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace fettle::trainer
