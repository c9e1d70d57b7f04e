// Workshop: a directory of its own in which a test runs the built fettle as its users do.
//
// Everything that a test starts is killed, and the directory removed, when the Workshop goes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/json.h"

namespace fettle::e2e {

// What a finished command left behind.
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
  std::string goal;   // "goal: 3", or nothing
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
  // Lines of a file that trials append to; 0 where there is none.
  std::size_t count_lines(const std::string& name) const;

  // Runs `fettle arguments...` in the directory to its end. `input` is its standard input.
  Finished fettle(const std::vector<std::string>& arguments, const std::string& input = "",
                  int seconds = 60);
  // Starts it and returns its process id; finish() waits for it.
  pid_t start(const std::vector<std::string>& arguments, const std::string& input = "");
  // What is started from now on ignores the signal from its beginning, as under nohup. Whatever
  // these tests were started with, all other signals do what they do by default.
  void ignore(int signal) { ignored_.push_back(signal); }
  Finished finish(pid_t pid, int seconds = 60);

  // Waits until the file has that many lines; false after `seconds`.
  bool wait_for_lines(const std::string& name, std::size_t lines, int seconds = 30) const;

  // The trials of a study as `fettle trials --output json` gives them.
  Json trials(const std::string& study = "digits");
  // How many of them are in that phase.
  std::size_t count_phase(const std::string& phase, const std::string& study = "digits");
  // All processes below `pid`.
  std::vector<pid_t> descendants(pid_t pid) const;
  // Processes whose environment names a trial file in this directory.
  std::vector<pid_t> trial_processes() const;

 private:
  std::string directory_;
  std::vector<pid_t> started_;
  std::vector<int> ignored_;
};

// An IDX file of bytes, which are 0, 1 and 2 by turns.
std::string idx_file(const std::vector<int>& dimensions);

// The object on the last line: {"result": ...} of `fettle run --output json`.
Json result_of(const Finished& finished);

}  // namespace fettle::e2e
