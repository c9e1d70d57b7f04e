// fettle validate: reports every error in study files, without running anything.
#include <iostream>

#include "cli/commands/check.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/folder_of.h"
#include "cli/exchange/results_file.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

std::string describe(const api::Study& study) {
  const api::StudySpec& spec = study.spec;
  const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  std::string text = "study " + printable(study.metadata.name) + ", " +
                     plural(count(spec.parameters.size()), "parameter") + ", " +
                     plural(count(spec.objectives.size()), "objective") + ", " +
                     plural(spec.budget.trials, "trial") + " at most, " +
                     format_count(spec.budget.parallelism) + " at once, algorithm " +
                     name_of(spec.algorithm.name);
  if (spec.early_stopping) text += " with " + name_of(spec.early_stopping->name);
  if (spec.replicates) {
    text += ", then " + plural(spec.replicates->runs, "further run") + " of each of the best " +
            format_count(spec.replicates->leaders);
  }
  return text;
}

// Tells where the study can run, and what prevents it in the other place.
std::string places(const Refusals& refusals) {
  if (refusals.local) return "runs on a cluster only: " + printable(*refusals.local);
  if (refusals.cluster) return "runs on this machine only: " + printable(*refusals.cluster);
  return "runs on this machine and on a cluster";
}

Runs runs_of(const Target& place, const ValidateOptions& options) {
  if (options.anywhere) return Runs::kAnywhere;
  return place.on_cluster ? Runs::kOnCluster : Runs::kLocally;
}

// Reads the files of results that the studies name.
void check_results(const std::string& file, CheckedFile& loaded) {
  for (std::size_t i = 0; i < loaded.studies.size(); ++i) {
    const auto read = read_results(folder_of(file), loaded.studies[i], loaded.documents[i]);
    const std::string& study = loaded.studies[i].metadata.name;
    if (!read.ok()) {
      loaded.diagnostics.push_back({file, 0, 0, study, read.error().message});
    } else if (!read->empty()) {
      loaded.warnings.push_back({file, 0, 0, study, *read});
    }
  }
}

}  // namespace

Result<int> validate_command(const Target& place, const ValidateOptions& options) {
  int code = kExitSucceeded;
  for (const std::string& file : options.files) {
    CheckedFile loaded = check_study_file(file, runs_of(place, options));
    check_results(file, loaded);
    for (const api::Diagnostic& diagnostic : loaded.diagnostics) {
      std::cerr << api::to_string(diagnostic) << '\n';
      code = kExitInvalid;
    }
    if (!loaded.diagnostics.empty()) continue;
    print_warnings(loaded);
    for (std::size_t i = 0; i < loaded.studies.size(); ++i) {
      std::cout << file << ": ok, " << describe(loaded.studies[i]) << '\n';
      if (options.anywhere) std::cout << "  " << places(loaded.refusals[i]) << '\n';
    }
  }
  return code;
}

}  // namespace fettle::cli
