#include "cli/doctor/doctor_case.h"

#include <algorithm>
#include <utility>

#include "api/enum_names.h"
#include "api/study.h"
#include "api/trial.h"
#include "api/trial_file.h"
#include "base/file.h"
#include "cli/commands/check.h"
#include "cli/views/text.h"
#include "core/plan.h"
#include "core/problem.h"
#include "core/study_plan.h"
#include "runtime/local/run/run_command.h"
#include "runtime/make_trial_file.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kKeptByHand = 2;  // for a configuration without a Study

// Only a Study states its kind; a trainer's configuration is JSON without one.
std::optional<Json> read_configuration(const std::string& file) {
  const auto text = read_file(file);
  if (!text.ok()) return std::nullopt;
  auto document = parse_json(*text);
  if (!document.ok() || !document->is_object() || document->find("kind") != nullptr) {
    return std::nullopt;
  }
  return std::move(document).value();
}

std::string backend_of(const Json& configuration) {
  const Json* const training = configuration.find("training");
  const Json* const backend = training == nullptr ? nullptr : training->find("backend");
  return backend != nullptr && backend->is_string() ? backend->as_string() : "auto";
}

// Returns the trial that a Study without trials would create first.
Result<api::Trial> first_trial(const api::Study& study) {
  FETTLE_ASSIGN(const auto sampler, search::make_sampler(core::problem_of(study)));
  const std::vector<api::TrialPtr> none;
  const core::Capacity capacity{.trials = 1};
  const core::StudyPlan plan = core::plan_study({study, none, capacity}, *sampler, /*now_ms=*/0);
  for (const core::StudyAction& action : plan.actions) {
    if (const auto* create = std::get_if<core::CreateTrial>(&action)) return create->trial;
  }
  return invalid("study " + study.metadata.name + " would begin with no trial");
}

Result<DoctorCase> case_of(api::Study study) {
  study.metadata.uid = "doctor";  // as from a store; trials name it as their owner's
  FETTLE_ASSIGN(const api::Trial trial, first_trial(study));
  DoctorCase found;
  found.name =
      printable(study.metadata.name) + ", first trial: " + format_parameters(trial.spec.parameters);
  found.workers = std::max<std::int64_t>(trial.spec.workers, 1);
  found.trials_at_once = std::max<std::int64_t>(study.spec.budget.parallelism, 1);
  if (const Status here = local::check_study(study); !here.ok()) {
    found.cannot_run = here.error().message;
  }
  if (!study.spec.trial.trainer) return found;
  FETTLE_ASSIGN(const api::TrialFile file,
                runtime::make_trial_file(study, trial, /*run=*/0, /*checkpoints=*/"none"));
  found.backend = api::to_string(file.trainer->training.backend);
  // Plus one that is being written.
  found.checkpoints_kept = file.checkpoints.keep + file.checkpoints.keep_rungs.value_or(0) + 1;
  found.trainer = api::write_trial_file(file);
  return found;
}

}  // namespace

DoctorCases read_doctor_cases(const std::string& file) {
  DoctorCases found;
  if (auto configuration = read_configuration(file)) {
    DoctorCase one;
    one.name = file;
    one.backend = backend_of(*configuration);
    one.checkpoints_kept = kKeptByHand + 1;
    one.trainer = std::move(configuration);
    found.cases.push_back(std::move(one));
    return found;
  }
  CheckedFile loaded = check_study_file(file, Runs::kOnCluster);
  found.diagnostics = std::move(loaded.diagnostics);
  for (api::Study& study : loaded.studies) {
    const std::string name = study.metadata.name;
    Result<DoctorCase> one = case_of(std::move(study));
    if (one.ok()) {
      one->directory = folder_of(file);
      found.cases.push_back(std::move(one).value());
    } else {
      found.diagnostics.push_back({file, 0, 0, name, one.error().message});
    }
  }
  return found;
}

}  // namespace fettle::cli
