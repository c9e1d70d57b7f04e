// The commands of fettle, one file each; main.cpp maps command lines to them.
//
// Each returns the exit code of the process (exit_code.h). Results go to stdout, complaints to
// stderr. Called once, from the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fettle::cli {

enum class Output { kText, kJson, kCsv };

struct RunOptions {
  std::string root = ".fettle";  // where studies are kept
  std::string file;
  std::string study;  // which one of a file with several; "" = the only one
  Output output = Output::kText;
  bool fresh = false;                       // begin anew; what is there is moved aside
  std::optional<std::int64_t> parallelism;  // instead of the file's budget.parallelism
  std::string program = "fettle";           // how hints call this program
  std::string resume;                       // the command line that goes on with this run
};
int run_command(const RunOptions& options);

struct ValidateOptions {
  std::vector<std::string> files;  // "-" = standard input
};
int validate_command(const ValidateOptions& options);

struct StatusOptions {
  std::string root = ".fettle";
  std::string study;  // "" = list all studies
  Output output = Output::kText;
  bool events = false;
};
int status_command(const StatusOptions& options);

struct TrialsOptions {
  std::string root = ".fettle";
  std::string study;
  Output output = Output::kText;
};
int trials_command(const TrialsOptions& options);

struct LogsOptions {
  std::string root = ".fettle";
  std::string trial;
  std::optional<std::int64_t> run;  // absent: the newest
  bool follow = false;
};
int logs_command(const LogsOptions& options);

}  // namespace fettle::cli
