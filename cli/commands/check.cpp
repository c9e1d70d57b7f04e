#include "cli/commands/check.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>

#include "api/study/pod_template.h"
#include "cli/common/folder_of.h"
#include "cli/terminal/text.h"
#include "core/names.h"
#include "core/study/problem.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/local/run/program_check.h"
#include "runtime/local/run/run_command.h"
#include "runtime/metric_lines.h"
#include "search/search.h"

namespace fettle::cli {
namespace {

// Checks that the operator can make a Job of it; the API server judges the Job.
Status check_for_cluster(const api::Study& study) {
  if (study.spec.trial.metrics) {
    FETTLE_TRY(runtime::check_metrics_filter(*study.spec.trial.metrics));
  }
  if (!study.spec.trial.trainer) {
    const Json* const container = api::trial_container(study.spec.trial.pod_template);
    if (container == nullptr || container->find("image") == nullptr) {
      return invalid(
          "the container of spec.trial.template has no image, which a cluster needs; add one");
    }
  }
  api::Study asked = study;
  asked.spec.trial.gpu.reset();  // each cluster states its own GPUs and parts of GPUs
  api::Trial first;
  first.metadata.name = core::trial_name(study.metadata.name, 0);
  first.spec.study = study.metadata.name;
  first.spec.workers = study.spec.trial.workers.min;
  first.spec.until_step = study.spec.resource.max;
  const auto job = kubernetes::build_job(asked, first, 0, {.trainer_image = "trainer"});
  return job.ok() ? success() : Status(job.error());
}

std::optional<std::string> message_of(const Status& status) {
  return status.ok() ? std::nullopt : std::optional(status.error().message);
}

Status check_here(const api::Study& study, const std::string& folder) {
  FETTLE_TRY(local::check_study(study));
  return local::check_program(study, folder);
}

// Checks only the places that matter: the API server checks a Study for a cluster alone.
Refusals refusals_of(const api::Study& study, Runs runs, const std::string& folder) {
  Refusals out;
  if (runs != Runs::kOnCluster) out.local = message_of(check_here(study, folder));
  if (runs == Runs::kAnywhere) out.cluster = message_of(check_for_cluster(study));
  return out;
}

// Returns why the Study cannot run where it must; absent: it can. For kAnywhere one of the two
// places is enough.
std::optional<std::string> summary_of(const Refusals& refusals, Runs runs) {
  if (runs != Runs::kAnywhere || refusals.local == refusals.cluster) return refusals.local;
  if (!refusals.local || !refusals.cluster) return std::nullopt;
  return "cannot run on this machine: " + *refusals.local +
         "; nor on a cluster: " + *refusals.cluster;
}

bool judges_int8(const api::StudySpec& spec) {
  const auto is_int8 = [](const auto& named) { return named.metric.starts_with("int8_"); };
  return std::ranges::any_of(spec.objectives, is_int8) ||
         std::ranges::any_of(spec.constraints, is_int8);
}

// Before quantize.fromEpoch a rung has the metrics of a network that was rounded afterwards.
std::optional<std::string> warning_of_early_rungs(const api::Study& study) {
  const auto& trainer = study.spec.trial.trainer;
  if (!trainer || !api::trains_quantized(trainer->training) || !judges_int8(study.spec)) return {};
  api::TrainingConfig training = trainer->training;
  training.epochs = study.spec.resource.max;
  const search::Problem problem = core::problem_of(study);
  const auto rungs =
      search::rung_steps(problem.algorithm, problem.early_stopping, problem.resource);
  const std::int64_t from = api::quantized_from(training);
  if (rungs.empty() || rungs.front() > from) return {};
  return "trials are judged from epoch " + std::to_string(rungs.front()) +
         " on, but train in 8 bits only behind epoch " + std::to_string(from) +
         " (quantize.fromEpoch): until then int8_* is that of a network rounded afterwards, which "
         "says little about the end; raise resource.min above " +
         std::to_string(from) + ", or lower fromEpoch";
}

std::vector<std::string> warnings_of(const api::Study& study, Runs runs,
                                     const std::string& folder) {
  std::vector<std::string> warnings;
  if (runs != Runs::kOnCluster) warnings = local::unused_parameters(study, folder);
  if (study.spec.trial.metrics) {
    std::string warning = runtime::metrics_filter_warning(*study.spec.trial.metrics);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  if (auto warning = warning_of_early_rungs(study)) warnings.push_back(std::move(*warning));
  return warnings;
}

CheckedFile check(api::LoadedFile loaded, const std::string& path, const std::string& folder,
                  Runs runs) {
  CheckedFile good;
  for (std::size_t i = 0; i < loaded.studies.size(); ++i) {
    api::Study& study = loaded.studies[i];
    std::optional<std::string> wrong;
    Refusals refusals;
    if (const auto sampler = search::make_sampler(core::problem_of(study)); !sampler.ok()) {
      wrong = Error{sampler.error()}.in("spec.algorithm").message;
    } else {
      refusals = refusals_of(study, runs, folder);
      wrong = summary_of(refusals, runs);
    }
    if (wrong) {
      loaded.diagnostics.push_back({path, 0, 0, study.metadata.name, *wrong});
      continue;
    }
    for (std::string& warning : warnings_of(study, runs, folder)) {
      loaded.warnings.push_back({path, 0, 0, study.metadata.name, std::move(warning)});
    }
    good.studies.push_back(std::move(study));
    good.documents.push_back(std::move(loaded.documents[i]));
    good.refusals.push_back(std::move(refusals));
  }
  good.diagnostics = std::move(loaded.diagnostics);
  good.warnings = std::move(loaded.warnings);
  return good;
}

}  // namespace

std::string read_input() {
  std::string text(api::kMaxStudyFileBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  return text;
}

CheckedFile check_study_file(const std::string& path, Runs runs) {
  if (path == "-") return check_study_text(read_input(), path, "", runs);
  return check(api::load_study_file(path), path, folder_of(path), runs);
}

CheckedFile check_study_text(std::string_view text, const std::string& path,
                             const std::string& folder, Runs runs) {
  return check(api::load_study_text(text, path), path, folder, runs);
}

void print_warnings(const CheckedFile& file) {
  for (api::Diagnostic warning : file.warnings) {
    warning.message = "warning: " + printable(warning.message);
    std::cerr << api::to_string(warning) << '\n';
  }
}

}  // namespace fettle::cli
