// fettle run: reads a study file and runs it to its end, on this machine or on a cluster.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "api/study/study_json.h"
#include "base/file.h"
#include "cli/cluster/cluster_run.h"
#include "cli/commands/adopt.h"
#include "cli/commands/check.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/folder_of.h"
#include "cli/common/interrupt.h"
#include "cli/exchange/results_file.h"
#include "cli/local/local_source.h"
#include "cli/local/runner.h"
#include "cli/terminal/text.h"
#include "cli/views/display.h"
#include "cli/views/summary.h"
#include "runtime/local/run/fitting.h"
#include "runtime/local/session.h"
#include "runtime/local/store/missing_study.h"
#include "runtime/local/store/pruning.h"

namespace fettle::cli {
namespace {

void say(const std::string& message) { std::cerr << "fettle: " << message << '\n'; }

std::string names_of(const std::vector<api::Study>& studies) {
  std::string names;
  for (const api::Study& study : studies) {
    names += (names.empty() ? "" : ", ") + study.metadata.name;
  }
  return names;
}

// Returns the index of the Study to run.
Result<std::size_t> choose_study(const std::vector<api::Study>& studies,
                                 const RunOptions& options) {
  if (studies.empty()) return invalid(options.file + " holds no Study");
  if (options.study.empty() && studies.size() > 1) {
    return invalid(options.file + " holds " + std::to_string(studies.size()) +
                   " Studies; say which one with --study: " + names_of(studies));
  }
  for (std::size_t i = 0; i < studies.size(); ++i) {
    if (options.study.empty() || studies[i].metadata.name == options.study) return i;
  }
  return invalid(options.file + " holds no Study called " + options.study +
                 "; there are: " + names_of(studies));
}

// Writes overrides from the command line into `study` and `document`, under the rules for files.
Status override_fields(const RunOptions& options, api::Study& study, Json& document) {
  if (!options.parallelism) return success();
  Json* spec = document.find("spec");
  Json budget = spec->find("budget") != nullptr ? *spec->find("budget") : Json::object();
  spec->set("budget", budget.set("parallelism", *options.parallelism));
  api::ReadStudy read = api::read_study(document);
  if (!read.errors.empty()) {
    return invalid("--parallelism: " + read.errors[0].path + ": " + read.errors[0].message);
  }
  study = std::move(read.study);
  return success();
}

Result<std::unique_ptr<local::Session>> open_session(const Target& place, const RunOptions& options,
                                                     const std::string& study) {
  local::SessionOptions session;
  session.root = place.root;
  session.directory = folder_of(options.file);
  session.study = study;
  session.say = say;
  if (options.fresh) {
    FETTLE_ASSIGN(const std::string aside,
                  move_aside(local::make_layout(session.root, study), {session.lock_wait_ms, say}));
    if (!aside.empty()) say("moved the study as it was to " + aside);
  }
  return local::Session::open(session);
}

// Tells a person what to do with a Study that has ended: a corrected program alone does not revive
// it.
std::string advice_when_over(const api::Study& study, const RunOptions& options) {
  const bool failed = exit_code_of_study(study) == kExitFailed;
  return "study " + study.metadata.name + " has " + (failed ? "failed" : "ended") +
         " already, and nothing is run now. To go on, raise spec.budget." +
         (failed ? "failures" : "trials") + " in " + options.file +
         "; to begin anew: " + options.resume + " --fresh";
}

// Says how far a resumed study has come, or that it has ended.
void announce(const api::Study& study, const RunOptions& options, Display& display) {
  const api::TrialCounts& counts = study.status.trials;
  if (counts.created == 0) return;
  if (study_state_of(study, {}) == StudyState::kFinished) {
    return display.say(advice_when_over(study, options));
  }
  const std::int64_t ended = counts.completed + counts.stopped + counts.failed;
  display.say("going on with study " + study.metadata.name + ": " +
              of_planned_trials(study, ended) + " have ended");
}

// A failure only states its reason; a user who stopped the study learns how to resume it, and one
// whose trials failed how to begin anew.
FinalMessage final_message_of(const Result<RunnerExit>& exit, const api::Study& study,
                              const RunOptions& options) {
  if (!exit.ok()) return {"", options.resume};
  if (*exit == RunnerExit::kFinished) {
    if (exit_code_of_study(study) != kExitFailed || study.status.trials.failed == 0) return {};
    return {"Once its cause is corrected: " + options.resume + " --fresh", ""};
  }
  return {"Interrupted; nothing is lost. To resume: " + options.resume, options.resume};
}

// Prunes the logs of a finished study; keeps logs that a person may still want, however old.
void prune_logs(const local::Layout& layout, const RunView& view) {
  std::set<std::string> keep;
  for (const api::BestTrial& best : view.study.status.best) {
    const api::Trial* trial = find_trial(view.trials, best.trial);
    const api::RunRecord* run = trial == nullptr ? nullptr : newest_run(*trial);
    if (run != nullptr) keep.insert(layout.run_directory(best.trial, run->run));
  }
  for (const FailureGroup& group : group_failures(view, log_files_of(layout))) {
    // Keeps the run's directory, which contains the log.
    keep.insert(group.log.substr(0, group.log.rfind('/')));
  }
  const local::Pruned pruned =
      local::prune_runs({layout.study_directory()}, local::kMostRunBytes, keep);
  if (pruned.runs == 0) return;
  say("removed the logs of " + plural(pruned.runs, "run") + ", the oldest; " +
      std::to_string(local::kMostRunBytes >> 30) + " GiB of them are kept");
}

Result<int> run_session(const Target& place, const RunOptions& options, local::Session& session,
                        const api::Study& study) {
  const auto display = make_display(options.output, log_files_of(session.layout()), place.program);
  FETTLE_ASSIGN(const auto interrupt, Interrupt::install());
  announce(study, options, *display);
  // Explains why fewer trials run at once than the Study allows, if so.
  const std::string held_back = local::explain_parallelism(study, session.runs().room());
  if (!held_back.empty()) display->say(held_back);
  Runner runner(session, *interrupt, *display, {study.metadata.ns, study.metadata.name});
  const Result<RunnerExit> exit = runner.run();
  const bool finished = exit.ok() && *exit == RunnerExit::kFinished;
  const bool suspended = exit.ok() && *exit == RunnerExit::kSuspended;
  if (suspended) {
    display->say("the study is suspended; set suspend: false in " + options.file +
                 " and run it again");
  }
  RunView view = runner.view();
  view.interrupted = !finished && !suspended;
  display->finish(view, final_message_of(exit, view.study, options));
  // A hanging thread still uses session and runner: no destructor may run.
  if (exit.ok() && *exit == RunnerExit::kAbandoned) ::_exit(kExitInterrupted);
  if (!exit.ok()) return complain(exit.error());
  if (finished) prune_logs(session.layout(), view);
  return finished ? exit_code_of_study(view.study) : kExitInterrupted;
}

// The trials inherit the variable that the built-in trainer reads.
Status write_tensorboard(const std::string& directory, const api::Study& study) {
  if (directory.empty()) return success();
  if (!study.spec.trial.trainer) {
    return invalid("--tensorboard is of the built-in trainer; the trials of study " +
                   study.metadata.name + " run a program of their own, which can write its own");
  }
  FETTLE_TRY(make_directories(directory));
  const std::string absolute = std::filesystem::absolute(directory).string();
  if (::setenv("FETTLE_TENSORBOARD", absolute.c_str(), 1) != 0) {
    return io_error("--tensorboard: " + system_message(errno));
  }
  return success();
}

// A Study that has begun keeps the results that it began with.
Status take_results(control::Store& store, const RunOptions& options, api::Study& study,
                    Json& document) {
  const auto stored = store.get_study({study.metadata.ns, study.metadata.name});
  const bool has_begun = stored.ok() && !stored->status.conditions.empty();
  if (has_begun && keep_results(*stored, study, document)) return success();
  FETTLE_ASSIGN(const std::string sentence, read_results(folder_of(options.file), study, document));
  if (!sentence.empty()) say(sentence);
  return success();
}

Result<int> run_here(const Target& place, const RunOptions& options, api::Study study,
                     Json document) {
  study.metadata.ns.clear();  // there are no namespaces on a laptop
  FETTLE_TRY(write_tensorboard(options.tensorboard, study));
  FETTLE_ASSIGN(const auto session, open_session(place, options, study.metadata.name));
  FETTLE_TRY(local::check_has_study(session->store(), session->layout()));
  FETTLE_TRY(take_results(session->store(), options, study, document));
  FETTLE_ASSIGN(const Adopted adopted, adopt_study(session->store(), study, document));
  for (const std::string& kept : adopted.kept) {
    say("the study continues with " + kept + ", as it began; " + options.file + " leaves it out");
  }
  return run_session(place, options, *session, adopted.study);
}

}  // namespace

Result<int> run_command(const Target& place, const RunOptions& options) {
  CheckedFile loaded =
      check_study_file(options.file, place.on_cluster ? Runs::kOnCluster : Runs::kLocally);
  for (const api::Diagnostic& diagnostic : loaded.diagnostics) {
    std::cerr << api::to_string(diagnostic) << '\n';
  }
  if (!loaded.diagnostics.empty()) return kExitInvalid;
  FETTLE_ASSIGN(const std::size_t chosen, choose_study(loaded.studies, options));
  api::Study& study = loaded.studies[chosen];
  Json& document = loaded.documents[chosen];
  print_warnings(loaded);
  FETTLE_TRY(override_fields(options, study, document));
  if (place.on_cluster)
    return run_on_cluster(place, options, std::move(study), std::move(document));
  return run_here(place, options, std::move(study), std::move(document));
}

}  // namespace fettle::cli
