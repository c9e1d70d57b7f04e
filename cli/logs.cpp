// fettle logs: what a trial printed, also while it goes on printing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/recorded_study.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace fettle::cli {
namespace {

constexpr auto kFollowInterval = std::chrono::milliseconds(200);

int fail(ExitCode code, const std::string& message) {
  std::cerr << "fettle: " << message << '\n';
  return code;
}

// "digits-12" -> "digits"; "" for what cannot be a trial's name.
std::string study_of(const std::string& trial) {
  const std::size_t dash = trial.rfind('-');
  if (dash == std::string::npos || dash + 1 == trial.size()) return "";
  const bool number = std::all_of(trial.begin() + static_cast<std::ptrdiff_t>(dash) + 1,
                                  trial.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? trial.substr(0, dash) : "";
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Copies the file from `offset` on to stdout; returns where it ended. A file that has become
// shorter was cut by its bound and is begun again.
off_t copy_from(int file, off_t offset) {
  struct stat now {};
  if (::fstat(file, &now) == 0 && now.st_size < offset) offset = 0;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::pread(file, buffer.data(), buffer.size(), offset);
    if (count <= 0) return offset;
    write_stdout(std::string(buffer.data(), static_cast<std::size_t>(count)));
    offset += count;
  }
}

void print_log(int file, const std::string& outcome_file, bool follow) {
  off_t offset = copy_from(file, 0);
  while (follow) {
    const bool ended = exists(outcome_file);
    offset = copy_from(file, offset);
    if (ended) return;
    std::this_thread::sleep_for(kFollowInterval);
  }
}

std::string known_runs(const std::vector<std::int64_t>& runs) {
  std::string text;
  for (const std::int64_t run : runs) text += (text.empty() ? "" : ", ") + std::to_string(run);
  return text;
}

}  // namespace

int logs_command(const LogsOptions& options) {
  const std::string study = study_of(options.trial);
  if (study.empty()) {
    return fail(kExitInvalid, "'" + printable(options.trial) +
                                  "' is no trial; trials are called <study>-<number>, and "
                                  "`fettle trials <study>` lists them");
  }
  const auto recorded = read_recorded_study(options.root, study);
  if (!recorded.ok()) return fail(exit_code_of(recorded.error().code), recorded.error().message);
  if (find_trial(recorded->view.trials, options.trial) == nullptr) {
    return fail(kExitInvalid,
                "study " + study + " has " +
                    plural(static_cast<std::int64_t>(recorded->view.trials.size()), "trial") +
                    " and none is called " + printable(options.trial));
  }
  const local::Layout& layout = recorded->layout;
  const std::vector<std::int64_t> runs = local::recorded_runs(layout, options.trial);
  if (runs.empty()) return fail(kExitInvalid, options.trial + " has not run yet");
  const std::int64_t run = options.run.value_or(runs.back());
  if (std::find(runs.begin(), runs.end(), run) == runs.end()) {
    return fail(kExitInvalid, options.trial + " has no run " + std::to_string(run) +
                                  "; there are: " + known_runs(runs));
  }
  const std::string path = layout.log_file(options.trial, run);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(kExitEnvironment, path + " cannot be read; the run may have printed nothing");
  print_log(file, layout.outcome_file(options.trial, run), options.follow);
  ::close(file);
  return kExitSucceeded;
}

}  // namespace fettle::cli
