#include "runtime/local/run/fitting.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "api/study/resolve.h"
#include "base/machine/open_files.h"
#include "base/machine/units.h"
#include "runtime/local/run/run_command.h"

namespace fettle::local {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string count(double value, const std::string& noun) {
  return number(value) + " " + noun + (value == 1 ? "" : "s");
}

// Takes the bound if it is the tightest so far.
void bound(double trials, const std::string& why, Fitting& fitting) {
  const auto whole = static_cast<std::int64_t>(std::clamp(std::floor(trials), 1.0, 1e9));
  if (!fitting.why.empty() && whole >= fitting.trials) return;
  fitting = {whole, why};
}

std::string field_of_cores(const api::TrialTemplate& trial) {
  return trial.trainer ? "spec.trial.trainer.training.threads"
                       : "resources.requests.cpu of its container";
}

}  // namespace

Need need_of(const api::Study& study, std::int64_t workers) {
  const auto count_of = static_cast<double>(workers);
  Need need;
  need.gpus = study.spec.trial.gpu ? workers * api::whole_gpus(study.spec.trial) : 0;
  need.cores = cores_per_worker(study) * count_of;
  need.memory = memory_per_worker(study) * workers;
  return need;
}

Need need_of_worker(const api::Study& study) {
  const std::int64_t slots = api::slots_of(study.spec.trial);
  Need need = need_of(study, 1);
  need.cores *= static_cast<double>(slots);
  need.memory *= slots;
  return need;
}

Fitting fitting_trials(const api::Study& study, const Room& room) {
  const api::TrialTemplate& trial = study.spec.trial;
  const Need need = need_of(study, std::max<std::int64_t>(trial.workers.min, 1));
  Fitting fitting;
  bound(room.cores / need.cores,  // never 0: at least kLeastCores for each worker
        "this machine has " + count(room.cores, "core") + ", and each trial takes " +
            number(need.cores) + " (" + field_of_cores(trial) + ")",
        fitting);
  if (need.gpus > 0) {
    const auto gpus = static_cast<double>(room.gpus.size());
    const std::int64_t slots = api::slots_of(trial);
    const std::string who = slots == 1
                                ? "each trial takes "
                                : std::to_string(slots) + " trials (spec.trial.slots) share ";
    bound(gpus / static_cast<double>(need.gpus) * static_cast<double>(slots),
          "this machine has " + count(gpus, "GPU") + ", and " + who + std::to_string(need.gpus) +
              " (spec.trial.gpu)",
          fitting);
  }
  if (need.memory > 0 && room.memory > 0) {  // 0: no memory is requested; the machine's is unknown
    const auto memory = static_cast<double>(room.memory);
    bound(memory / static_cast<double>(need.memory),
          "this machine has " + machine::bytes_text(memory) + " of memory, and each trial takes " +
              machine::bytes_text(static_cast<double>(need.memory)) +
              " (resources.requests.memory of its container)",
          fitting);
  }
  const std::int64_t runs =
      api::trains_warm(trial) ? machine::workers_instead(room.runs) : room.runs;
  bound(
      static_cast<double>(runs),
      "the limit on open files of this machine (ulimit -Hn) is enough for " + std::to_string(runs),
      fitting);
  return fitting;
}

std::string explain_parallelism(const api::Study& study, const Room& room) {
  const std::int64_t allowed = study.spec.budget.parallelism;
  const std::int64_t trials = study.spec.budget.trials;
  const Fitting fitting = fitting_trials(study, room);
  if (fitting.trials >= std::min(allowed, trials)) return "";
  return std::to_string(fitting.trials) + (fitting.trials == 1 ? " trial runs" : " trials run") +
         " at once, although parallelism is " + std::to_string(allowed) + ": " + fitting.why;
}

}  // namespace fettle::local
