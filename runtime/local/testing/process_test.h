// Helpers for tests with real processes: a scratch directory, Studies that run /bin/sh, waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "runtime/local/session.h"

namespace fettle::local {

class Scratch {
 public:
  Scratch();
  ~Scratch() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Polls until `holds`. Returns false after a time that suffices on the slowest machine.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(4);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A Study "s" whose trials run `sh -c script`, with a grace period of 300 ms.
api::Study shell_study(const std::string& script);
// Trial s-<index> of that Study, with a record of run 1.
api::Trial shell_trial(std::int64_t index = 0);

// For a Session whose machine has more cores than any test asks for and no GPU.
SessionOptions session_options(const std::string& root, const std::string& study = "s");
Result<std::unique_ptr<Session>> open_session(const std::string& root);

// The process ids that a file lists, one on each line.
std::vector<pid_t> pids_in(const std::string& path);
// Whether the process exists and is no zombie.
bool is_alive(pid_t pid);

// The runner that the test kills: starts a trial that writes its pids to <root>/pids, then waits.
int run_victim(const std::string& root);

}  // namespace fettle::local
