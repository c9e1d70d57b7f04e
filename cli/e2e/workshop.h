// Workshop: a private directory in which a test runs the built fettle as users do.
//
// Tests wait for events, never for a length of time, so that they pass on a machine of any speed.
// All processes that a test started are killed, and the directory removed, when the Workshop goes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace fettle::e2e {

// Seconds after which a missing event will never happen.
inline constexpr int kPatience = 240;

// A script that notes in the file `began` that it runs, and ends once the file `go` exists.
inline constexpr const char* kUntilGo =
    "echo x >> began; while [ ! -e go ]; do sleep 0.05; done; echo '{\"value\": 1}'";

// The results of a finished command.
struct Finished {
  int code = -1;  // exit code; 128 + n after signal n; -1: it did not end in time and was killed
  std::string out;
  std::string err;
};

// A study whose trials run `script` by /bin/sh.
struct StudyText {
  std::string name = "digits";
  std::string script = "echo '{\"value\": 1}'";
  std::string budget = "{trials: 4, parallelism: 2}";
  std::string search = "algorithm: {name: random, seed: 3}";  // fields of spec, each its line
  std::string goal;                                           // "goal: 3", or nothing
  std::string trial;  // more fields of spec.trial, each line "    name: value\n"
  std::string resources = "{requests: {cpu: 10m}}";
  int steps = 1;

  std::string yaml() const;
};

class Workshop {
 public:
  Workshop();
  ~Workshop();
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  const std::string& directory() const { return directory_; }
  std::string path(const std::string& name) const { return directory_ + '/' + name; }
  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  bool exists(const std::string& name) const;
  // Counts lines of a file to which trials append; 0 if there is no file.
  std::size_t count_lines(const std::string& name) const;

  // Runs `fettle arguments...` in the directory to its end. `input` is its standard input.
  Finished fettle(const std::vector<std::string>& arguments, const std::string& input = "");
  // Starts it and returns its process id; finish() waits for it.
  pid_t start(const std::vector<std::string>& arguments, const std::string& input = "");
  // Lets later commands ignore the signal from their start, as under nohup. All other signals have
  // their default actions, whatever the tests themselves ignore.
  void ignore(int signal) { ignored_.push_back(signal); }
  Finished finish(pid_t pid);
  // Starts `fettle run study.yaml` with this study, and returns its process id once the file
  // `began` has `lines` lines: that many trials are at work. The test fails if that never happens.
  pid_t run_until_begun(const StudyText& study, std::size_t lines);
  // Sends the signal and waits for the end.
  Finished interrupt(pid_t pid, int signal);

  // Each waits at most kPatience, and returns whether the condition holds.
  bool wait_until(const std::function<bool()>& holds) const;
  bool wait_for_lines(const std::string& name, std::size_t lines) const;
  bool wait_until_no_trial_runs() const;
  // Waits until the command of that process, started here, has printed this text.
  bool wait_until_said(pid_t pid, const std::string& text) const;

  // Returns the trials of a study from `fettle trials --output json`.
  Json trials(const std::string& study = "digits");
  // Counts the trials in that phase.
  std::size_t count_phase(const std::string& phase, const std::string& study = "digits");
  // Returns all processes below `pid`.
  std::vector<pid_t> descendants(pid_t pid) const;
  // Returns processes whose environment names a trial file in this directory.
  std::vector<pid_t> trial_processes() const;

 private:
  // Returns the path of a command's input and output, without .in, .out and .err.
  std::string files_of(std::size_t command) const;
  std::size_t command_of(pid_t pid) const;

  std::string directory_;
  std::vector<pid_t> started_;
  std::vector<int> ignored_;
};

// Returns an IDX file of bytes, 0, 1 and 2 in turn.
std::string idx_file(const std::vector<int>& dimensions);

// Returns the object on the last line: {"result": ...} of `fettle run --output json`.
Json result_of(const Finished& finished);

}  // namespace fettle::e2e
