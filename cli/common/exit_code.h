// The exit codes of fettle.
#pragma once

#include "base/result.h"

namespace fettle::cli {

enum ExitCode : int {
  kExitSucceeded = 0,
  kExitFailed = 1,         // the study failed
  kExitInvalid = 2,        // the input is wrong
  kExitEnvironment = 3,    // disk, permissions, processes, or another process has the study
  kExitNotes = 4,          // fettle convert: converted, with notes to look at
  kExitInterrupted = 130,  // stopped by a signal or suspended; running it again resumes
};

// Returns the code for an error that ends a command.
constexpr ExitCode exit_code_of(ErrorCode code) {
  return code == ErrorCode::kInvalid || code == ErrorCode::kNotFound ? kExitInvalid
                                                                     : kExitEnvironment;
}

// Prints the error to standard error; returns exit_code_of it.
int complain(const Error& error);

}  // namespace fettle::cli
