// Random Studies and Trials, for tests of reading and writing them. Not synchronised.
#pragma once

#include <cmath>
#include <iterator>
#include <optional>
#include <string>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/philox.h"

namespace fettle::api {

// Draws Studies and Trials that are valid, field by field.
class RandomDocuments {
 public:
  explicit RandomDocuments(std::uint64_t seed) : random_(seed) {}

  bool coin() { return random_.below(2) == 1; }
  std::int64_t whole(std::int64_t min, std::int64_t max) {
    return min +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(max - min + 1)));
  }
  // Draws a number over many orders of magnitude, with all digits.
  double positive() {
    return std::ldexp(random_.uniform() + 0.5, static_cast<int>(whole(-20, 20)));
  }
  template <class T, class Draw>
  std::optional<T> maybe(Draw draw) {
    return coin() ? std::optional<T>(draw()) : std::nullopt;
  }
  std::string any_text() {
    static const std::string kTexts[] = {"a", "; rm -rf /", "$(x)", "\"", "\n", "{{}}", "ü", "yes"};
    return kTexts[random_.below(std::size(kTexts))];
  }

  Parameter parameter(int index) {
    Parameter p;
    p.name = "p" + std::to_string(index);
    p.type = static_cast<ParameterType>(whole(0, 3));
    if (p.type == ParameterType::kDouble) {
      p.scale = coin() ? Scale::kLog : Scale::kLinear;
      p.min = positive();
      p.max = p.min + positive();
    } else if (p.type == ParameterType::kInteger) {
      p.min = static_cast<double>(whole(-9, 9));
      p.step = maybe<double>([&] { return static_cast<double>(whole(1, 5)); });
      p.max = p.min + p.step.value_or(1) * static_cast<double>(whole(1, 9));
    } else if (p.type == ParameterType::kCategorical) {
      p.values = {Json(any_text()), Json(whole(0, 9)), Json(positive() + 10), Json(coin())};
    }
    return p;
  }

  Study study() {
    Study s;
    s.metadata.name = "study";
    s.metadata.uid = any_text();
    s.metadata.created_ms = whole(1, 2'000'000'000'000);
    s.metadata.labels = {{"a.b/c", any_text()}};
    s.spec.objectives = {{"loss", Direction::kMinimize, maybe<double>([&] { return positive(); }),
                          coin() ? Take::kBest : Take::kLast}};
    for (int i = 0; i < 5; ++i) s.spec.parameters.push_back(parameter(i));
    Parameter child = parameter(5);
    child.when = condition_on(s.spec.parameters[0]);
    s.spec.parameters.push_back(child);
    s.spec.constraints = {{"memory", std::nullopt, positive() * 1e6}};
    s.spec.resource = {"epoch", 1, whole(9, 100)};
    fill_search(s.spec);
    fill_trial(s.spec.trial);
    s.spec.suspend = coin();
    s.spec.ttl_after_finished =
        maybe<double>([&] { return static_cast<double>(whole(0, 100'000)); });
    s.status.conditions = {{"Running", coin(), "Started", any_text(), whole(1, 1'000'000)}};
    s.status.best = {{"study-1", 3, {positive(), -positive()}, Json::object({{"p0", 1}})}};
    s.status.best[0].replicates = maybe<ReplicateResults>([&] {
      return ReplicateResults{whole(0, 9), maybe<double>([&] { return -positive(); }),
                              maybe<double>([&] { return positive(); }), whole(0, 9)};
    });
    s.status.eta_seconds = maybe<double>([&] { return positive(); });
    return s;
  }

  Trial trial() {
    Trial t;
    t.metadata.name = "study-1";
    t.spec.study = "study";
    t.spec.parameters = Json::object({{"a", positive()}, {"b", any_text()}, {"c", coin()}});
    t.spec.seed = static_cast<std::int64_t>(random_.bits64() >> 1);
    t.spec.parent = maybe<Parent>([&] { return Parent{"study-0", whole(0, 9)}; });
    if (coin()) t.spec.search.replicates = "study-0";
    t.spec.stop = maybe<Stop>([&] { return Stop{"GoalReached", any_text(), whole(0, 9)}; });
    t.status.phase = static_cast<TrialPhase>(whole(0, 5));
    RunRecord run;
    run.started_ms = whole(1, 2'000'000'000'000);
    run.outcome = maybe<Outcome>([&] { return static_cast<Outcome>(whole(0, 6)); });
    run.earlier_seconds = positive();
    if (coin()) run.earlier_gpu_seconds = positive();
    run.message = any_text();
    t.status.runs = {run};
    t.status.facts = {{whole(1, 99),
                       static_cast<FactKind>(whole(0, 3)),
                       3,
                       {positive(), std::nullopt},
                       coin(),
                       whole(0, 9),
                       maybe<double>([&] { return positive(); })}};
    t.status.report = maybe<Report>([&] {
      Report report;
      report.step = report.checkpoint_step = 9;
      report.metrics = {{"loss", positive()}};
      report.checkpoint = "step-9";
      report.final_result = coin();
      report.at_ms = 5;
      report.history = {{1, {{"loss", 2}}}};
      return report;
    });
    return t;
  }

 private:
  Condition condition_on(const Parameter& p) {
    if (p.type == ParameterType::kBoolean) return {p.name, {Json(true)}};
    if (p.type == ParameterType::kCategorical) return {p.name, {p.values[1]}};
    return {p.name, {Json(p.min)}};
  }

  // Draws a rule with fields that no other rule has.
  EarlyStopping random_rule() {
    EarlyStopping rule;
    const std::int64_t which = whole(0, 5);
    if (which == 0) rule = {.name = StoppingKind::kAsha, .promote = true};
    if (which == 1)
      rule = {.name = StoppingKind::kPercentile, .percentile = 1 + 98 * random_.uniform()};
    if (which == 2) rule = {.name = StoppingKind::kPatience, .patience = whole(1, 9)};
    if (which == 3) rule = {.name = StoppingKind::kThreshold, .threshold = positive()};
    if (which == 4)
      rule = {.name = StoppingKind::kCurve, .probability = random_.uniform(), .top = whole(1, 3)};
    if (which == 5) rule.name = StoppingKind::kNone;
    return rule;
  }

  void fill_search(StudySpec& spec) {
    if (coin())
      spec.algorithm = {AlgorithmKind::kTpe, whole(0, 99), whole(1, 20), whole(1, 99), {}, false};
    if (coin()) spec.algorithm = {AlgorithmKind::kGrid, 0, {}, {}, whole(2, 99), coin()};
    if (coin()) spec.algorithm = {AlgorithmKind::kCmaes, 0, {}, {}, {}, false, whole(4, 99)};
    if (coin()) {
      spec.algorithm = {AlgorithmKind::kPbt, whole(0, 99), {}, {}, {}, false};
      spec.algorithm.interval = maybe<std::int64_t>([&] { return whole(1, 9); });
      spec.algorithm.quantile = 0.5 * random_.uniform();
      spec.algorithm.resample_probability = random_.uniform();
    }
    if (whole(0, 3) == 0) {
      spec.algorithm = {AlgorithmKind::kGp, whole(0, 99), whole(1, 20), whole(1, 99), {}, false};
      spec.algorithm.cost_aware = coin();
    }
    if (coin())
      spec.early_stopping = EarlyStopping{StoppingKind::kAsha, 1.5 + random_.uniform(), 5, 1};
    if (coin())
      spec.early_stopping = EarlyStopping{StoppingKind::kMedian, 3, whole(1, 9), whole(1, 5)};
    if (coin()) spec.early_stopping = random_rule();
    if (whole(0, 3) == 0) {
      spec.algorithm = {AlgorithmKind::kSchedule, 0, {}, {}, {}, false};
      spec.algorithm.legs = {{spec.resource.max, Json::object({{"x", positive()}}),
                              maybe<std::int64_t>([&] { return whole(0, 99); })}};
    }
    if (spec.algorithm.name == AlgorithmKind::kPbt ||
        spec.algorithm.name == AlgorithmKind::kSchedule) {
      spec.early_stopping.reset();  // these algorithms decide which trials continue
    }
    spec.budget = {whole(kLeastMembers, 99), whole(1, 9), whole(0, 9),
                   maybe<double>([&] { return positive(); }),
                   maybe<double>([&] { return positive(); })};
    const bool warm = coin() && spec.algorithm.name != AlgorithmKind::kSchedule;
    if (warm) spec.warm_start = WarmStart{{"pilot", "digits"}};
    const bool repeats = coin() && !replaces_trials(spec.algorithm.name);
    if (repeats) spec.replicates = Replicates{whole(1, 20), whole(1, 100)};
  }

  void fill_trial(TrialTemplate& trial) {
    trial.timeout = maybe<double>([&] { return static_cast<double>(whole(1, 100'000)); });
    trial.heartbeat = maybe<double>([&] { return positive(); });
    trial.checkpoints = maybe<Checkpoints>([&] {
      Checkpoints checkpoints;
      checkpoints.keep = whole(1, 9);
      if (whole(0, 1) == 0) {
        checkpoints.claim = "claim";
      } else {
        checkpoints.size = static_cast<double>(whole(1, 9)) * 1e9;
        checkpoints.storage_class = "fast";
      }
      return checkpoints;
    });
    trial.metrics = maybe<MetricsFilter>([] { return MetricsFilter{"(\\w+)=(\\d+)"}; });
    if (trial.metrics && coin()) trial.metrics->step = "epoch (\\d+)";
    if (trial.metrics) trial.metrics->first_step = whole(0, 1);
    if (coin()) trial.pass_environment = {"HF_TOKEN", "_x1"};
    trial.workers = {1, whole(1, 8)};
    if (coin()) trial.execution = Execution::kProcess;
    if (trial.workers.max == 1 && coin()) trial.execution = Execution::kWarm;
    if (coin()) trial.workers.sizing = WorkersSizing::kManual;
    if (coin()) trial.gpu = any_gpu(trial.workers.max);
    trial.pod_template = Json::object(
        {{"spec", Json::object({{"containers", Json(Json::Array{Json::object(
                                                   {{"name", "t"},
                                                    {"args", Json(Json::Array{Json(any_text())})},
                                                    {"image", any_text()}})})}})}});
  }

  // Only one worker may have a part of a card.
  Gpu any_gpu(std::int64_t workers) {
    Gpu gpu;
    if (workers > 1) {
      gpu.count = whole(1, 8);
    } else {
      gpu.memory = 0x1p30 * static_cast<double>(whole(1, 80));
    }
    if (coin()) gpu.model = "NVIDIA-H100";
    return gpu;
  }

  Random random_;
};

}  // namespace fettle::api
