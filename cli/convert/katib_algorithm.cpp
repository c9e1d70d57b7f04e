// An Experiment's algorithm and early stopping.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "api/fields/field.h"
#include "api/study/study.h"
#include "cli/convert/katib_parts.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::int64_t kLargestSeed = std::int64_t{1} << 53;
constexpr std::int64_t kMostMembers = 1'000'000;
constexpr double kLargestQuantile = 0.5;
constexpr double kDefaultQuantile = 0.2;
constexpr const char* kVolumeSize = "1Gi";  // of the volume that Katib makes by default

// The defaults of Katib's medianstop.
constexpr std::int64_t kMinTrials = 3;
constexpr std::int64_t kStartStep = 4;

struct Counterpart {
  std::string_view katib;
  std::string_view fettle;
};
constexpr std::array<Counterpart, 10> kAlgorithms{{{"random", "random"},
                                                   {"grid", "grid"},
                                                   {"tpe", "tpe"},
                                                   {"multivariate-tpe", "tpe"},
                                                   {"bayesianoptimization", "gp"},
                                                   {"cmaes", "cmaes"},
                                                   {"sobol", "sobol"},
                                                   {"hyperband", "hyperband"},
                                                   {"pbt", "pbt"},
                                                   {"quasirandom", "sobol"}}};

// Reads the settings of one algorithm. A setting that nobody reads is lost, and noted.
class Settings {
 public:
  Settings(const Source& algorithm, SourceReader& reader)
      : all_(settings_of(algorithm, reader)), reader_(reader) {}

  // The setting, marked as read; absent if it is not set.
  Source take(std::string_view name) {
    const auto found = all_.find(std::string(name));
    if (found == all_.end()) return {};
    read_.insert(found->first);
    return found->second;
  }
  void note_others(const std::string& target) {
    for (const auto& [name, at] : all_) {
      if (read_.contains(name)) continue;
      reader_.note(
          at, target,
          "the setting " + api::clean_text(name, 40) + " has no counterpart and is left out");
    }
  }
  SourceReader& reader() { return reader_; }

 private:
  std::map<std::string, Source> all_;
  std::set<std::string> read_;
  SourceReader& reader_;
};

void set_whole(Json& out, std::string_view field, const Source& setting, std::int64_t least,
               std::int64_t most, SourceReader& reader) {
  if (const auto value = reader.whole(setting, least, most)) out.set(field, *value);
}

void add_seed(Json& out, Settings& settings) {
  set_whole(out, "seed", settings.take("random_state"), 0, kLargestSeed, settings.reader());
}

void add_model_settings(std::string_view katib, Json& out, Settings& settings) {
  SourceReader& reader = settings.reader();
  const bool skopt = katib == "bayesianoptimization";
  set_whole(out, "startupTrials", settings.take(skopt ? "n_initial_points" : "n_startup_trials"), 0,
            api::kMaxStartupTrials, reader);
  if (!skopt) {
    set_whole(out, "candidates", settings.take("n_ei_candidates"), 1, api::kMaxCandidates, reader);
    return;
  }
  // A Gaussian process is what gp is.
  const Source model = settings.take("base_estimator");
  if (model.present() && reader.text(model) != "GP") {
    reader.note(model, "spec.algorithm.name",
                "gp is a Gaussian process; Katib used " + api::clean_text(*reader.text(model), 20));
  }
}

void add_resource(std::int64_t steps, const std::string& unit, KatibDraft& draft) {
  Json resource = Json::object();
  const bool named = !unit.empty() && unit.size() <= 63;
  resource.set("unit", named ? unit : "step");
  resource.set("min", 1);
  resource.set("max", steps);
  draft.spec.set("resource", std::move(resource));
}

void add_hyperband(Json& out, Settings& settings, const Source& algorithm, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const Source most = settings.take("r_l");
  const Source name = settings.take("resource_name");
  if (!most.present() || !name.present()) {
    return reader.fail(algorithm.member("algorithmSettings"),
                       "hyperband needs r_l, the steps of a trial, and resource_name, the "
                       "parameter that receives them");
  }
  const auto steps = reader.whole(most, 2, kMostSteps);
  const auto eta = reader.number(settings.take("eta"));
  if (!steps) return;
  if (eta && *eta > 1) out.set("reductionFactor", std::trunc(*eta));
  add_resource(*steps, draft.resource, draft);
  if (draft.options.steps && *draft.options.steps != *steps) {
    reader.note(most, "spec.resource.max", "--steps is left aside: hyperband's r_l says it");
  }
  reader.note(name, "spec.resource",
              "the parameter " + api::clean_text(draft.resource, 63) +
                  " is now FETTLE_UNTIL_STEP: the program trains up to that step, and reports a "
                  "step of this unit. A promoted trial is run again, and resumes if the program "
                  "saves checkpoints (docs/your-program.md)");
}

void add_checkpoints(const Source& folder, KatibDraft& draft) {
  Json volume = Json::object();
  volume.set("size", kVolumeSize);
  volume.set("accessMode", "ReadWriteMany");
  draft.trial.set("checkpoints", std::move(volume));
  const std::string on_volume =
      std::string("checkpoints are on a volume of the Study, of ") + kVolumeSize +
      ", which is deleted with it: choose its size and access mode, or a claim";
  const std::string path = draft.reader.text(folder).value_or("");
  draft.redirects.push_back({path, "$(FETTLE_CHECKPOINTS)", folder, "spec.trial.checkpoints",
                             on_volume + "; the program finds them in $(FETTLE_CHECKPOINTS)",
                             on_volume + "; the program has to look in FETTLE_CHECKPOINTS"});
}

std::int64_t generations_of(std::int64_t members, const KatibDraft& draft) {
  const std::int64_t trials = draft.spec.find("budget")->find("trials")->as_integer();
  return std::max<std::int64_t>((trials + members - 1) / members, 2);
}

void add_population(Json& out, Settings& settings, const Source& algorithm, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  const Source size = settings.take("n_population");
  if (!size.present()) {
    return reader.fail(algorithm.member("algorithmSettings"), "pbt needs n_population");
  }
  const auto members = reader.whole(size, api::kLeastMembers, kMostMembers);
  if (!members) return;
  const Source threshold = settings.take("truncation_threshold");
  const double share = reader.number(threshold).value_or(kDefaultQuantile);
  if (share > 0 && share <= kLargestQuantile) {
    out.set("quantile", share);
  } else {
    out.set("quantile", kLargestQuantile);
    reader.note(threshold, "spec.algorithm.quantile",
                "at most half of a population can be replaced by the other half");
  }
  out.set("interval", 1);
  out.set("resampleProbability", reader.number(settings.take("resample_probability")).value_or(0));
  // Katib starts a trial for each generation; here one trial trains through all of them.
  const std::int64_t steps = draft.options.steps.value_or(generations_of(*members, draft));
  draft.spec.find("budget")->set("trials", *members);
  add_resource(steps, "generation", draft);
  reader.note(size, "spec.resource",
              "a trial now trains through all generations, in runs of one step each: the program "
              "resumes from FETTLE_CHECKPOINTS, or from FETTLE_PARENT if that is empty, and ends "
              "at FETTLE_UNTIL_STEP (docs/your-program.md)");
  add_checkpoints(settings.take("suggestion_trial_dir"), draft);
}

std::string_view counterpart(const std::string& name) {
  const auto found = std::ranges::find(kAlgorithms, name, &Counterpart::katib);
  return found == kAlgorithms.end() ? std::string_view() : found->fettle;
}

void add_settings(const std::string& name, Json& out, Settings& settings, const Source& algorithm,
                  KatibDraft& draft) {
  if (name == "hyperband") add_hyperband(out, settings, algorithm, draft);
  if (name == "pbt") add_population(out, settings, algorithm, draft);
  if (name == "tpe" || name == "multivariate-tpe" || name == "bayesianoptimization") {
    add_model_settings(name, out, settings);
  }
  if (name == "cmaes") {
    const Source restarts = settings.take("restart_strategy");
    if (restarts.present() && draft.reader.text(restarts) != "ipop") {
      draft.reader.note(restarts, "spec.algorithm.name",
                        "Fettle's cmaes always restarts with larger populations");
    }
  }
  add_seed(out, settings);
  settings.note_others("spec.algorithm");
}

void stop_by_median(const Source& rule, std::int64_t steps, KatibDraft& draft) {
  SourceReader& reader = draft.reader;
  Settings settings(rule, reader);
  const auto others = reader.whole(settings.take("min_trials_required"), 1, 1'000'000);
  const auto start = reader.whole(settings.take("start_step"), 1, kMostSteps);
  Json out = Json::object();
  out.set("name", "median");
  out.set("minTrials", others.value_or(kMinTrials));
  out.set("startStep", start.value_or(std::max<std::int64_t>(std::min(kStartStep, steps - 1), 1)));
  draft.spec.set("earlyStopping", std::move(out));
  reader.note(rule, "spec.earlyStopping",
              "Katib compares with the mean over trials of their first start_step values, Fettle "
              "with the median of their values at the same step");
  settings.note_others("spec.earlyStopping");
}

}  // namespace

std::map<std::string, Source> settings_of(const Source& algorithm, SourceReader& reader) {
  std::map<std::string, Source> out;
  for (const Source& setting : reader.items(algorithm.member("algorithmSettings"))) {
    if (!reader.is_map(setting)) continue;
    const auto name = reader.text(setting.member("name"));
    if (name) out[*name] = setting.member("value");
  }
  return out;
}

void look_at_algorithm(const Source& spec, KatibDraft& draft) {
  const Source algorithm = spec.member("algorithm");
  if (!draft.reader.is_map(algorithm)) return;
  const auto name = draft.reader.text(algorithm.member("algorithmName"));
  draft.by_skopt = name == "bayesianoptimization";
  if (name != "hyperband") return;
  SourceReader twice;  // convert_algorithm() reports the errors
  const auto settings = settings_of(algorithm, twice);
  const auto found = settings.find("resource_name");
  if (found != settings.end()) draft.resource = twice.text(found->second).value_or("");
}

void convert_algorithm(const Source& spec, KatibDraft& draft) {
  const Source algorithm = spec.member("algorithm");
  SourceReader& reader = draft.reader;
  const bool rungs = draft.spec.find("resource") != nullptr;
  if (!rungs && draft.options.steps) add_resource(*draft.options.steps, "step", draft);
  if (!reader.is_map(algorithm)) {
    if (!algorithm.present()) reader.fail(algorithm, "is missing; expected algorithmName");
    return;
  }
  const Source at = algorithm.member("algorithmName");
  const std::string name = reader.text(at).value_or("");
  if (name.empty()) return reader.fail(at, "is missing; expected a name such as random");
  const std::string_view fettle = counterpart(name);
  if (fettle.empty()) {
    draft.spec.set("algorithm", Json::object({{"name", "auto"}}));
    return reader.note(at, "spec.algorithm",
                       "Fettle has no algorithm " + api::clean_text(name, 40) +
                           "; auto chooses one by the space and the budget");
  }
  Json out = Json::object({{"name", fettle}});
  Settings settings(algorithm, reader);
  add_settings(name, out, settings, algorithm, draft);
  draft.spec.set("algorithm", std::move(out));
  reader.lose_others(algorithm, {"algorithmName", "algorithmSettings"}, "spec.algorithm");
}

void convert_early_stopping(const Source& spec, KatibDraft& draft) {
  const Source rule = spec.member("earlyStopping");
  SourceReader& reader = draft.reader;
  if (!reader.is_map(rule)) return;
  const Source at = rule.member("algorithmName");
  const std::string name = reader.text(at).value_or("");
  if (name.empty()) return;
  if (name != "medianstop") {
    return reader.note(
        at, "spec.algorithm",
        "Fettle has no rule " + api::clean_text(name, 40) + "; no trial is stopped early");
  }
  if (draft.options.steps) return stop_by_median(rule, *draft.options.steps, draft);
  reader.note(rule, "spec.algorithm",
              "no trial is stopped early, since an Experiment does not say how many steps a trial "
              "takes: convert it with --steps N, the number of values that a trial reports");
}

}  // namespace fettle::cli
