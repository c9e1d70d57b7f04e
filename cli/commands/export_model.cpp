// fettle export-model: the network of a trial as a file for other programs. The built-in trainer
// writes it; the checkpoints of other programs are copied as they are.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <utility>

#include "base/program.h"
#include "cli/cluster/checkpoint_copy.h"
#include "cli/cluster/cluster.h"
#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/scratch_folder.h"
#include "cli/exchange/model_files.h"
#include "cli/terminal/text.h"
#include "cli/views/expected_best.h"
#include "runtime/local/session.h"
#include "runtime/local/store/layout.h"
#include "runtime/make_trial_file.h"

namespace fettle::cli {
namespace {

constexpr const char* kCheckpoint = "checkpoint";  // as it is
constexpr const char* kUsual = "safetensors";

// The name of the best trial; "" while there is no result. Errors: several are best.
Result<std::string> best_trial(SeenStudy& seen) {
  expect_best(seen.view);
  const std::vector<api::BestTrial>& best = seen.view.study.status.best;
  if (best.empty()) return std::string();
  if (best.size() == 1) return best.front().trial;
  constexpr std::size_t kMostNamed = 10;
  std::string names;
  for (std::size_t i = 0; i < best.size() && i < kMostNamed; ++i) {
    names += (i > 0 ? ", " : "") + best[i].trial;
  }
  return invalid("study " + seen.view.study.metadata.name + " has " + std::to_string(best.size()) +
                 " best trials; choose one with --trial: " + names +
                 (best.size() > kMostNamed ? ", ..." : ""));
}

Status check_trial(const Target& place, const SeenStudy& seen, const std::string& trial) {
  if (find_trial(seen.view.trials, trial) != nullptr) return success();
  const Error missing = no_such_trial(seen, trial);
  return not_found(missing.message + "; " + place.program + " trials " +
                   seen.view.study.metadata.name + " lists them");
}

Result<std::string> format_of(const api::Study& study, const std::string& asked) {
  if (study.spec.trial.trainer) return asked.empty() ? kUsual : asked;
  if (asked.empty() || asked == kCheckpoint) return std::string(kCheckpoint);
  return invalid("--format " + asked + " is of the built-in trainer; the trials of study " +
                 study.metadata.name +
                 " run a program, whose checkpoints --format checkpoint copies");
}

// The trainer's answer, a line of JSON.
Result<Json> run_trainer(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {local::find_trainer()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto end =
      run_program({.command = command, .keeps_errors = true, .limit = std::chrono::hours(1)});
  if (!end.ok()) return Error(end.error()).in(command[0]);
  if (std::string why = end->failure(); !why.empty()) {
    constexpr std::string_view kSpeaker = "fettle-trainer: ";
    if (why.starts_with(kSpeaker)) why.erase(0, kSpeaker.size());
    while (why.ends_with('\n')) why.pop_back();
    return end->code == api::kTrainerRefusesInput ? invalid(why) : io_error(why);
  }
  return parse_json(end->output, {.allow_non_finite = true});
}

// The files that were written, for a sentence.
std::string files_in(const Json& answer) {
  std::string text;
  const Json* const files = answer.find("files");
  if (files == nullptr || !files->is_array()) return text;
  for (const Json& file : files->as_array()) {
    text += (text.empty() ? "" : " and ") + file.as_string();
  }
  return text;
}

// The folder with the trial's checkpoints: of this machine, or a copy from a cluster, which
// `scratch` then holds.
Result<std::string> checkpoints_of(const Target& place, const api::Study& study,
                                   const api::Trial& trial, const std::string& image,
                                   std::optional<ScratchFolder>& scratch) {
  if (!place.on_cluster) {
    const local::Layout layout = local::make_layout(place.root, study.metadata.name);
    return runtime::checkpoint_directory(layout.checkpoint_root(), study.metadata.uid,
                                         trial.metadata.name);
  }
  FETTLE_ASSIGN(const Cluster cluster, reach_cluster(place));
  FETTLE_ASSIGN(ScratchFolder made, ScratchFolder::make());
  scratch.emplace(std::move(made));
  std::string copy = scratch->path() + "/checkpoints";
  FETTLE_TRY(copy_from_volume(cluster, study, trial, image, copy));
  return copy;
}

// " at epoch 9".
std::string step_in(const api::StudySpec& spec, const Json& answer) {
  const Json* const step = answer.find("step");
  return step == nullptr || !step->is_integer() ? "" : at_step(spec, step->as_integer());
}

}  // namespace

std::vector<std::string> model_formats() { return {kCheckpoint, "onnx", kUsual, "torch"}; }

Result<int> export_model_command(const Target& place, const ExportModelOptions& options) {
  FETTLE_ASSIGN(SeenStudy seen, read_study(place, options.study));
  const api::Study& study = seen.view.study;
  std::string trial = options.trial;
  if (trial.empty()) {
    FETTLE_ASSIGN(trial, best_trial(seen));
  }
  if (trial.empty()) {
    std::cerr << "fettle: study " << study.metadata.name << " has no result yet\n";
    return kExitFailed;
  }
  FETTLE_TRY(check_trial(place, seen, trial));
  const bool only_onnx = options.int8 && options.format.empty();
  FETTLE_ASSIGN(const std::string format, format_of(study, only_onnx ? "onnx" : options.format));
  std::optional<ScratchFolder> scratch;
  FETTLE_ASSIGN(
      const std::string checkpoints,
      checkpoints_of(place, study, *find_trial(seen.view.trials, trial), options.image, scratch));
  const std::string path = options.path.empty()
                               ? model_path(trial + (options.int8 ? "-int8" : ""), format)
                               : options.path;
  if (format == kCheckpoint) {
    FETTLE_TRY(copy_checkpoints(checkpoints, path, options.force));
    std::cout << "Wrote " << path << ": the checkpoints of trial " << trial << ".\n";
    return kExitSucceeded;
  }
  std::vector<std::string> arguments = {
      "--export",      path,        "--format", format,
      "--checkpoints", checkpoints, "--origin", study.metadata.name + "/" + trial};
  if (options.int8) arguments.emplace_back("--int8");
  if (options.force) arguments.emplace_back("--force");
  FETTLE_ASSIGN(const Json answer, run_trainer(arguments));
  std::cout << "Wrote " << files_in(answer) << ": trial " << trial << step_in(study.spec, answer)
            << ".\n";
  return kExitSucceeded;
}

}  // namespace fettle::cli
