// The commands of fettle, one file each; main.cpp maps command lines to them.
//
// Each returns the exit code of the process (exit_code.h). Results go to stdout, errors to
// stderr. Called once, from the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fettle::cli {

enum class Output { kText, kJson, kCsv, kYaml };

// Where studies are kept and trials run.
struct Target {
  bool on_cluster = false;
  std::string root = ".fettle";    // on this machine
  std::string kubeconfig;          // on a cluster; "" = as kubectl finds it
  std::string context;             // "" = the kubeconfig's current one
  std::string ns;                  // "" = the context's
  std::string program = "fettle";  // how hints call this program, to read the same place
};

struct RunOptions {
  Target place;
  std::string file;
  std::string study;  // which one of a file with several; "" = the only one
  Output output = Output::kText;
  bool fresh = false;                       // start over; the old study is moved aside
  std::optional<std::int64_t> parallelism;  // instead of the file's budget.parallelism
  std::string resume;                       // the command line that resumes this run
};
int run_command(const RunOptions& options);

struct ValidateOptions {
  Target place;
  bool anywhere = false;           // no place was named: it is enough if a Study can run in one
  std::vector<std::string> files;  // "-" = standard input
};
int validate_command(const ValidateOptions& options);

struct DoctorOptions {
  Target place;
  std::string file;  // a Study or a trainer's configuration; "" = the machine alone
  Output output = Output::kText;
};
int doctor_command(const DoctorOptions& options);

struct StatusOptions {
  Target place;
  std::string study;  // "" = list all studies
  Output output = Output::kText;
  bool events = false;
};
int status_command(const StatusOptions& options);

struct GpusOptions {
  Target place;
  Output output = Output::kText;
};
int gpus_command(const GpusOptions& options);

struct TrialsOptions {
  Target place;
  std::string study;
  Output output = Output::kText;
};
int trials_command(const TrialsOptions& options);

struct BestOptions {
  Target place;
  std::string study;
  Output output = Output::kText;
  bool schedule = false;  // the parameters of the best trial, step by step
};
int best_command(const BestOptions& options);

struct LogsOptions {
  Target place;
  std::string trial;
  std::optional<std::int64_t> run;  // absent: the newest
  bool follow = false;
};
int logs_command(const LogsOptions& options);

struct ScaleOptions {
  Target place;
  std::string trial;
  std::int64_t workers = 1;
};
int scale_command(const ScaleOptions& options);

struct ReportOptions {
  Target place;
  std::string study;
  std::string file;  // "-" = standard output; "" = <study>.html
};
int report_command(const ReportOptions& options);

struct WhyOptions {
  Target place;
  std::string trial;
  Output output = Output::kText;
};
int why_command(const WhyOptions& options);

struct ReplayOptions {
  Target place;
  std::string study;
  std::string algorithm;       // replay with this one; "" = the Study's
  std::string early_stopping;  // replay with this one; "" = the Study's
};
int replay_command(const ReplayOptions& options);

}  // namespace fettle::cli
