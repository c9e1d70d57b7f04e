#include "cli/commands/check.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>

#include "api/pod_template.h"
#include "core/names.h"
#include "core/problem.h"
#include "runtime/kubernetes/job_builder.h"
#include "runtime/local/run/run_command.h"
#include "runtime/metric_lines.h"
#include "search/search.h"

namespace fettle::cli {
namespace {

// Standard input, but no more of it than is needed to see that it is too long.
std::string read_input() {
  std::string text(api::kMaxStudyFileBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  return text;
}

// Whether the operator can make a Job of it; the API server judges the Job.
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
  asked.spec.trial.gpu.reset();  // which GPUs and parts of them there are, each cluster says itself
  api::Trial first;
  first.metadata.name = core::trial_name(study.metadata.name, 0);
  first.spec.study = study.metadata.name;
  first.spec.workers = study.spec.trial.workers.min;
  first.spec.until_step = study.spec.resource.max;
  const auto job = kubernetes::build_job(asked, first, 0, {.trainer_image = "trainer"});
  return job.ok() ? success() : Status(job.error());
}

// What the document alone cannot show.
std::optional<Error> check_beyond_document(const api::Study& study, Runs runs) {
  if (auto sampler = search::make_sampler(core::problem_of(study)); !sampler.ok()) {
    return Error{sampler.error()}.in("spec.algorithm");
  }
  if (runs == Runs::kOnCluster) return std::nullopt;  // the API server checks the rest
  const Status here = local::check_study(study);
  if (here.ok()) return std::nullopt;
  if (runs == Runs::kLocally) return here.error();
  const Status there = check_for_cluster(study);
  if (there.ok()) return std::nullopt;
  if (here.error().message == there.error().message) return here.error();
  return invalid("cannot run on this machine: " + here.error().message +
                 "; nor on a cluster: " + there.error().message);
}

}  // namespace

Refusals refusals_of(const api::Study& study) {
  Refusals out;
  if (const Status here = local::check_study(study); !here.ok()) out.local = here.error().message;
  if (const Status there = check_for_cluster(study); !there.ok()) {
    out.cluster = there.error().message;
  }
  return out;
}

api::LoadedFile check_study_file(const std::string& path, Runs runs) {
  api::LoadedFile loaded =
      path == "-" ? api::load_study_text(read_input(), "-") : api::load_study_file(path);
  api::LoadedFile good;
  for (std::size_t i = 0; i < loaded.studies.size(); ++i) {
    api::Study& study = loaded.studies[i];
    if (const auto error = check_beyond_document(study, runs)) {
      loaded.diagnostics.push_back({path, 0, 0, study.metadata.name, error->message});
    } else {
      good.studies.push_back(std::move(study));
      good.documents.push_back(std::move(loaded.documents[i]));
    }
  }
  good.diagnostics = std::move(loaded.diagnostics);
  return good;
}

}  // namespace fettle::cli
