// fettle export: a study as one document (exchange/document.h), which the exporters of the Python
// package read.
#include <poll.h>

#include <algorithm>
#include <iostream>
#include <string_view>

#include "base/file.h"
#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/interrupt.h"
#include "cli/exchange/document.h"
#include "cli/exchange/python_module.h"
#include "cli/terminal/terminal.h"
#include "core/conditions.h"

namespace fettle::cli {
namespace {

constexpr int kFollowIntervalMs = 5000;

struct Exporter {
  const char* name;
  const char* example;  // of a target; "" = takes none
  bool needs_target;    // else its own configuration may name one
  bool follows;
};
constexpr Exporter kExporters[] = {
    {"json", "", false, false},
    {"optuna", "sqlite:///optuna.db", true, false},
    {"mlflow", "http://127.0.0.1:5000", false, true},
    {"tensorboard", "runs", true, false},
    {"wandb", "", false, false},
};

// The study and the target that the command line names; "" = not named.
struct Places {
  std::string study;
  std::string target;
};

// A single name is the target where one is needed, unless a study has that name.
Result<Places> places_of(const Exporter& exporter, const std::vector<std::string>& named,
                         StudySource& source) {
  Places places;
  const bool takes_target = *exporter.example != '\0';
  if (named.size() == 2) places = {named[0], named[1]};
  if (named.size() == 1) {
    FETTLE_ASSIGN(const std::vector<std::string> studies, source.names());
    const bool is_study = std::ranges::find(studies, named[0]) != studies.end();
    const bool is_target = takes_target && !is_study &&
                           (exporter.needs_target || named[0].find("://") != std::string::npos);
    (is_target ? places.target : places.study) = named[0];
  }
  if (!takes_target && !places.target.empty()) {
    return invalid(std::string("--to ") + exporter.name + " takes no target, but " + places.target +
                   " is one");
  }
  if (exporter.needs_target && places.target.empty()) {
    return invalid(std::string("--to ") + exporter.name + " needs a target: fettle export " +
                   (places.study.empty() ? "STUDY" : places.study) + " --to " + exporter.name +
                   ' ' + exporter.example);
  }
  return places;
}

Status check_options(const Exporter& exporter, const ExportOptions& options) {
  const bool is_json = std::string_view(exporter.name) == "json";
  if (!is_json && !options.file.empty()) return invalid("--output goes with --to json only");
  if (is_json && !options.name.empty()) return invalid("--name does not go with --to json");
  if (options.follow && !exporter.follows) return invalid("--follow goes with --to mlflow only");
  return success();
}

Result<int> export_json(StudySource& source, const std::string& study, const std::string& file) {
  FETTLE_ASSIGN(const SeenStudy seen, source.read(study, Detail::kWithEvents));
  const std::string text = export_document(seen.view).dump() + '\n';
  if (file.empty() || file == "-") {
    write_stdout(text);
    return kExitSucceeded;
  }
  FETTLE_TRY(write_file(file, text));
  std::cout << "Wrote " << file << ".\n";
  return kExitSucceeded;
}

// Returns whether a signal came before the time was over.
bool wait_for_signal(Interrupt& interrupt, int ms) {
  pollfd one{.fd = interrupt.fd(), .events = POLLIN, .revents = 0};
  (void)::poll(&one, 1, ms);
  return interrupt.take() > 0;
}

// Sends one document, or, with follow, one every few seconds until the study has ended.
Result<int> feed(StudySource& source, const std::string& study, bool follow, PythonModule& module) {
  FETTLE_ASSIGN(const auto interrupt, Interrupt::install());
  bool stopped = false;
  for (bool more = true; more;) {
    FETTLE_ASSIGN(const SeenStudy seen, source.read(study, Detail::kWithEvents));
    if (!module.write_line(export_document(seen.view).dump())) break;  // its exit code says why
    more = follow && !core::is_finished(seen.view.study.status);
    stopped = more && wait_for_signal(*interrupt, kFollowIntervalMs);
    if (stopped) more = false;
  }
  FETTLE_ASSIGN(const int code, module.finish());
  return stopped && code == kExitSucceeded ? static_cast<int>(kExitInterrupted) : code;
}

}  // namespace

std::vector<std::string> export_targets() {
  std::vector<std::string> names;
  for (const Exporter& exporter : kExporters) names.emplace_back(exporter.name);
  return names;
}

Result<int> export_command(const Target& place, const ExportOptions& options) {
  const Exporter& exporter = *std::ranges::find(
      kExporters, options.to, [](const Exporter& one) { return std::string_view(one.name); });
  FETTLE_TRY(check_options(exporter, options));
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_ASSIGN(Places places, places_of(exporter, options.places, *source));
  if (places.study.empty()) {
    FETTLE_ASSIGN(places.study, default_study(*source));
  }
  if (options.to == "json") return export_json(*source, places.study, options.file);
  // A wrong name of the study is said before Python starts.
  FETTLE_TRY(source->read(places.study, Detail::kObjects));
  std::vector<std::string> arguments;
  if (!places.target.empty()) arguments = {"--target", places.target};
  if (!options.name.empty()) arguments.insert(arguments.end(), {"--name", options.name});
  if (options.follow) arguments.emplace_back("--follow");
  FETTLE_ASSIGN(PythonModule module, PythonModule::start("fettle.export." + options.to, arguments));
  return feed(*source, places.study, options.follow, module);
}

}  // namespace fettle::cli
