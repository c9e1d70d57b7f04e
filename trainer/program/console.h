// Output and exit codes of fettle-trainer. Lines for programs go to standard output, lines for
// people to standard error. Any thread.
#pragma once

#include <string>

#include "api/trainer/trainer_config.h"
#include "base/result.h"

namespace fettle::trainer {

inline constexpr int kFailed = 1;
inline constexpr int kWrongInput = api::kTrainerRefusesInput;
inline constexpr int kMissesOthers = api::kWorkerMissesOthers;
inline constexpr int kSignalled = 128;  // and the signal's number

// Prints to standard output, at once. The first failure to write is reported by log_line().
void print_line(const std::string& line);
bool lost_a_line();  // whether a write has failed

// Prints to standard error, with the rank if there are several workers.
void log_line(const std::string& line);

// The exit code of a program that fails with that error.
int code_of(const Error& error);
// Prints the error and returns its exit code.
int fail(const Error& error);

}  // namespace fettle::trainer
