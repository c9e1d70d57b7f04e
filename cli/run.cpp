// fettle run: reads a study file, opens its session on this machine, and runs it to its end.
#include <iostream>
#include <utility>

#include "api/study_json.h"
#include "cli/adopt.h"
#include "cli/check.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/runner.h"
#include "cli/text.h"
#include "core/plan.h"
#include "runtime/local/session.h"

namespace fettle::cli {
namespace {

int fail(const Error& error) {
  std::cerr << "fettle: " << error.message << '\n';
  return exit_code_of(error.code);
}

void say(const std::string& message) { std::cerr << "fettle: " << message << std::endl; }

std::string names_of(const std::vector<api::Study>& studies) {
  std::string names;
  for (const api::Study& study : studies) {
    names += (names.empty() ? "" : ", ") + study.metadata.name;
  }
  return names;
}

// The Study with what the command line says instead of the file, under the rules for files.
Result<api::Study> with_overrides(api::Study study, const RunOptions& options) {
  if (!options.parallelism) return study;
  study.spec.budget.parallelism = *options.parallelism;
  const api::ReadStudy read = api::read_study(api::write_study(study));
  if (read.errors.empty()) return study;
  return invalid("--parallelism: " + read.errors[0].path + ": " + read.errors[0].message);
}

// The one Study of the file that is to run.
Result<api::Study> choose_study(std::vector<api::Study> studies, const RunOptions& options) {
  if (studies.empty()) return invalid(options.file + " holds no Study");
  if (options.study.empty() && studies.size() > 1) {
    return invalid(options.file + " holds " + std::to_string(studies.size()) +
                   " Studies; say which one with --study: " + names_of(studies));
  }
  for (api::Study& study : studies) {
    if (!options.study.empty() && study.metadata.name != options.study) continue;
    study.metadata.ns.clear();  // there are no namespaces on a laptop
    return with_overrides(std::move(study), options);
  }
  return invalid(options.file + " holds no Study called " + options.study +
                 "; there are: " + names_of(studies));
}

Result<std::unique_ptr<local::Session>> open_session(const RunOptions& options,
                                                     const std::string& study) {
  local::SessionOptions session;
  session.root = options.root;
  session.study = study;
  session.say = say;
  if (options.fresh) {
    FETTLE_ASSIGN(const std::string aside,
                  move_aside(local::make_layout(options.root, study), {session.lock_wait_ms, say}));
    if (!aside.empty()) say("moved the study as it was to " + aside);
  }
  return local::Session::open(session);
}

int exit_code_of_study(const api::Study& study) {
  return state_of(study) == "failed" ? kExitFailed : kExitSucceeded;
}

// "Going on ...": what a resumed study has behind it.
void announce(const api::Study& study, Display& display) {
  const api::TrialCounts& counts = study.status.trials;
  if (counts.created == 0) return;
  const std::int64_t ended = counts.completed + counts.stopped + counts.failed;
  display.say("going on with study " + study.metadata.name + ": " + format_count(ended) + " of " +
              plural(study.spec.budget.trials, "trial") + " have ended");
}

int run_session(const RunOptions& options, local::Session& session, const api::Study& study) {
  const auto display = make_display(options.output, session.layout(), options.program);
  auto interrupt = Interrupt::install();
  if (!interrupt.ok()) return fail(interrupt.error());
  announce(study, *display);
  Runner runner(session, **interrupt, *display, {study.metadata.ns, study.metadata.name});
  const auto ending = runner.run();
  const bool finished = ending.ok() && *ending == Runner::Ending::kFinished;
  const bool suspended = ending.ok() && *ending == Runner::Ending::kSuspended;
  if (suspended) {
    display->say("the study is suspended; set suspend: false in " + options.file +
                 " and run it again");
  }
  RunView view = runner.view();
  view.interrupted = !finished && !suspended;
  display->finish(view, finished ? "" : options.resume);
  if (!ending.ok()) return fail(ending.error());
  return finished ? exit_code_of_study(view.study) : static_cast<int>(kExitInterrupted);
}

}  // namespace

int run_command(const RunOptions& options) {
  api::LoadedFile loaded = check_study_file(options.file);
  for (const api::Diagnostic& diagnostic : loaded.diagnostics) {
    std::cerr << api::to_string(diagnostic) << '\n';
  }
  if (!loaded.diagnostics.empty()) return kExitInvalid;
  auto chosen = choose_study(std::move(loaded.studies), options);
  if (!chosen.ok()) return fail(chosen.error());
  auto session = open_session(options, chosen->metadata.name);
  if (!session.ok()) return fail(session.error());
  const auto study = adopt_study((*session)->store(), *chosen);
  if (!study.ok()) return fail(study.error());
  return run_session(options, **session, *study);
}

}  // namespace fettle::cli
