// What fettle-trainer says, and the exit codes it ends with. Lines for programs go to standard
// output, lines for people to standard error. Any thread.
#pragma once

#include <string>

#include "api/trainer_config.h"
#include "base/result.h"

namespace fettle::trainer {

inline constexpr int kFailed = 1;
inline constexpr int kWrongInput = api::kTrainerRefusesInput;
inline constexpr int kMissesOthers = api::kWorkerMissesOthers;
inline constexpr int kSignalled = 128;  // and the signal's number

// To standard output, at once. What cannot be written is said once, by log_line().
void print_line(const std::string& line);
bool lost_a_line();  // whether that has happened

// To standard error, with the rank where there are several workers.
void log_line(const std::string& line);

// Says the error and returns the exit code for it.
int fail(const Error& error);

}  // namespace fettle::trainer
