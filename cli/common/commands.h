// The commands of fettle, one file each; main.cpp maps command lines to them.
//
// Each returns the exit code of the process (exit_code.h), or the error that ended it, which
// main.cpp prints. Results go to stdout, errors to stderr. Called once, from the main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace fettle::cli {

enum class Output { kText, kJson, kCsv, kYaml, kEnv };

// The place that keeps studies and runs trials.
struct Target {
  bool on_cluster = false;
  std::string root = ".fettle";    // on this machine
  std::string kubeconfig;          // on a cluster; "" = found as by kubectl
  std::string context;             // "" = the kubeconfig's current one
  std::string ns;                  // "" = the context's
  std::string program = "fettle";  // name of this program in hints, with options for the same place
};

struct RunOptions {
  std::string file;
  std::string study;  // name of the Study in a file with several; "" = the only one
  Output output = Output::kText;
  bool fresh = false;                       // start over; the old study is moved aside
  std::optional<std::int64_t> parallelism;  // instead of the file's budget.parallelism
  std::string tensorboard;                  // a directory for event files; "" = none
  std::string resume;                       // the command line that resumes this run
};
Result<int> run_command(const Target& place, const RunOptions& options);

struct ValidateOptions {
  bool anywhere = false;           // no place was named: one place where a Study can run is enough
  std::vector<std::string> files;  // "-" = standard input
};
Result<int> validate_command(const Target& place, const ValidateOptions& options);

struct ConvertOptions {
  std::vector<std::string> files;     // "-" = standard input
  std::string from = "katib";         // a name in convert_sources()
  std::optional<std::int64_t> steps;  // of a trial, where the file does not say it
  std::string output = "-";           // "-" = standard output
};
std::vector<std::string> convert_sources();
Result<int> convert_command(const ConvertOptions& options);

struct DoctorOptions {
  Output output = Output::kText;
};
Result<int> doctor_command(const Target& place, const DoctorOptions& options);

struct StatusOptions {
  std::string study;  // "" = the only one, or a list of several
  Output output = Output::kText;
  bool events = false;
};
Result<int> status_command(const Target& place, const StatusOptions& options);

struct GpusOptions {
  Output output = Output::kText;
};
Result<int> gpus_command(const Target& place, const GpusOptions& options);

struct TrialsOptions {
  std::string study;  // "" = the only or the newest one
  Output output = Output::kText;
};
Result<int> trials_command(const Target& place, const TrialsOptions& options);

struct BestOptions {
  std::string study;  // "" = the only or the newest one
  Output output = Output::kText;
  bool schedule = false;  // the parameters of the best trial, step by step
};
Result<int> best_command(const Target& place, const BestOptions& options);

struct LogsOptions {
  std::string trial;
  std::optional<std::int64_t> run;  // absent: the newest
  bool follow = false;
  bool raw = false;  // with escape sequences, also on a terminal
};
Result<int> logs_command(const Target& place, const LogsOptions& options);

struct ScaleOptions {
  std::string trial;
  std::int64_t workers = 1;
};
Result<int> scale_command(const Target& place, const ScaleOptions& options);

struct StopOptions {
  std::string study;
  bool now = false;  // without a grace period
};
Result<int> stop_command(const Target& place, const StopOptions& options);

struct DeleteOptions {
  std::string study;
};
Result<int> delete_command(const Target& place, const DeleteOptions& options);

struct InitOptions {
  std::string kind = "python";  // a name in init_kinds()
};
std::vector<std::string> init_kinds();
// Writes into the working directory.
Result<int> init_command(const InitOptions& options);

struct ReportOptions {
  std::string study;  // "" = the only or the newest one
  std::string file;   // "-" = standard output; "" = <study>.html
  bool no_logs = false;
};
Result<int> report_command(const Target& place, const ReportOptions& options);

struct ServeOptions {
  std::vector<std::string> studies;   // names; empty = all
  std::optional<std::uint16_t> port;  // 0 = any free one; absent: the usual one
  std::string socket;                 // path of a Unix socket instead; "" = none
  std::string token_file;             // "" = a random token
  bool open = false;                  // opens the page in a browser
};
Result<int> serve_command(const Target& place, const ServeOptions& options);

struct ExportOptions {
  std::vector<std::string> places;  // [study] [target]: the target is a URL or a folder
  std::string to = "json";          // a name in export_targets()
  std::string file;                 // json: "" = standard output
  std::string name;                 // the study's name there; "" = its own
  bool follow = false;              // keeps exporting until the study ends
};
std::vector<std::string> export_targets();
Result<int> export_command(const Target& place, const ExportOptions& options);

struct ExportModelOptions {
  std::string study;   // "" = the only or the newest one
  std::string trial;   // "" = the best one
  std::string format;  // a name in model_formats(); "" = the usual one of the study
  std::string path;    // "" = named after the trial
  std::string image;   // of the pod that reads a cluster's volume; "" = the trial's
  bool int8 = false;   // the 8-bit network, as ONNX
  bool force = false;  // replaces files that exist
};
std::vector<std::string> model_formats();
Result<int> export_model_command(const Target& place, const ExportModelOptions& options);

struct ImportOptions {
  std::string from;    // a name in import_sources()
  std::string source;  // URL, folder or file
  std::string study;   // Optuna: "" = the only one there
  std::vector<std::string> objectives;
  std::vector<std::string> parameters;  // csv, wandb: columns; empty: as the importer finds them
  std::string file;                     // "" = standard output
};
std::vector<std::string> import_sources();
Result<int> import_command(const ImportOptions& options);

struct WhyOptions {
  std::string trial;
  Output output = Output::kText;
};
Result<int> why_command(const Target& place, const WhyOptions& options);

struct ReplayOptions {
  std::string study;           // "" = the only or the newest one
  std::string algorithm;       // replay with this one; "" = the Study's
  std::string early_stopping;  // replay with this one; "" = the Study's
};
Result<int> replay_command(const Target& place, const ReplayOptions& options);

}  // namespace fettle::cli
