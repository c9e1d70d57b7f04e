// run_program(): runs another program to its end and returns its output.
//
// A program that takes too long or prints too much is killed. Blocking; thread-safe.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fettle {

struct ProgramCall {
  std::vector<std::string> command;  // a name without "/" is searched for in $PATH
  // In addition to this process's variables, or instead of those of the same name.
  std::vector<std::pair<std::string, std::string>> environment = {};
  bool inherits_input = false;  // otherwise its standard input is empty
  bool keeps_errors = false;    // collects its standard error; otherwise it is this process's
  std::chrono::milliseconds limit = std::chrono::minutes(1);
};

struct ProgramEnd {
  int code = 0;  // the exit code, or minus the number of the signal
  std::string output;
  std::string errors;  // with keeps_errors

  // Why it failed: its standard error, else "exit code 3"; "" = it did not fail.
  std::string failure() const;
};

// Errors: kNotFound, there is no such program; kIo, it cannot be started; kInvalid, it was killed.
// Messages begin with a verb: "did not end within 60s".
Result<ProgramEnd> run_program(const ProgramCall& call);

}  // namespace fettle
