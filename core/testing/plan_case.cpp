// Plan tables as YAML: a thin layer over JSON, since the Study part is a real document.
#include "core/testing/plan_case.h"

#include <yaml-cpp/yaml.h>

#include <cmath>
#include <set>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/study_json.h"
#include "base/check.h"
#include "base/merge_patch.h"
#include "core/names.h"

namespace fettle::core {

namespace {

// The Study that a case's `study` is laid over.
constexpr const char* kStandardStudy = R"({
  "apiVersion": "fettle.dev/v1alpha1", "kind": "Study",
  "metadata": {"name": "digits", "uid": "u1", "generation": 1},
  "spec": {
    "objectives": [{"metric": "accuracy", "direction": "Maximize"}],
    "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
    "resource": {"unit": "epoch", "min": 1, "max": 9},
    "algorithm": {"name": "random"},
    "budget": {"trials": 4, "parallelism": 2, "failures": 1},
    "trial": {"retries": 1, "template": {"spec": {"containers": [
      {"name": "trainer", "image": "none", "command": ["true"]}]}}}
  }})";

Json to_json(const YAML::Node& node) {
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node) list.push_back(to_json(item));
    return list;
  }
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) object.set(entry.first.Scalar(), to_json(entry.second));
    return object;
  }
  if (!node.IsScalar()) return Json();
  const Result<Json> value = parse_json(node.Scalar());
  return value.ok() && node.Tag() != "!" ? *value : Json(node.Scalar());
}

std::int64_t to_ms(const Json& seconds) {
  return static_cast<std::int64_t>(std::llround(seconds.as_double() * 1000));
}

template <class E>
E to_enum(const Json& name) {
  const auto value = api::from_string<E>(name.as_string());
  CHECK(value, "unknown name " + name.as_string());
  return *value;
}

// Reads "inf" and "nan", which JSON cannot express.
double to_value(const Json& value) {
  if (value.is_number()) return value.as_double();
  return value.as_string() == "inf" ? INFINITY : NAN;
}

// {step, at, final, checkpoint, history: {step: {metric: value}}}; everything else is a metric.
api::Report to_report(const Json& from) {
  api::Report report;
  for (const auto& [key, value] : from.as_object()) {
    if (key == "step") {
      report.step = value.as_integer();
    } else if (key == "at") {
      report.at_ms = to_ms(value);
    } else if (key == "waiting") {
      report.waiting = value.as_string();
    } else if (key == "final") {
      report.final_result = value.as_boolean();
    } else if (key == "checkpoint") {
      report.checkpoint_step = value.as_integer();
      report.checkpoint = "step-" + std::to_string(report.checkpoint_step);
    } else if (key == "history") {
      for (const auto& [step, metrics] : value.as_object()) {
        api::HistoryPoint point;
        point.step = std::stoll(step);
        for (const auto& [name, metric] : metrics.as_object()) {
          point.metrics[name] = to_value(metric);
        }
        report.history.push_back(std::move(point));
      }
    } else {
      report.metrics[key] = to_value(value);
    }
  }
  return report;
}

api::Fact to_fact(const Json& from) {
  api::Fact fact;
  for (const auto& [key, value] : from.as_object()) {
    if (key == "seq") fact.seq = value.as_integer();
    if (key == "kind") fact.kind = to_enum<api::FactKind>(value);
    if (key == "step") fact.step = value.as_integer();
    if (key == "at") fact.at_ms = to_ms(value);
    if (key == "infeasible") fact.infeasible = value.as_boolean();
    if (key == "cost") fact.cost = value.as_double();
    if (key != "values") continue;
    for (const Json& item : value.as_array()) {
      fact.values.push_back(item.is_number() ? std::optional(item.as_double()) : std::nullopt);
    }
  }
  return fact;
}

double gibibytes(const Json& value) { return value.as_double() * 0x1p30; }

api::RunRecord to_record(const Json& from, const api::TrialSpec& spec) {
  api::RunRecord record;
  record.until_step = spec.until_step;
  for (const auto& [key, value] : from.as_object()) {
    if (key == "run") record.run = value.as_integer();
    if (key == "workers") record.workers = value.as_integer();
    if (key == "resizes") {
      for (const Json& resize : value.as_array()) {
        record.resizes.push_back({to_ms(*resize.find("at")), resize.find("workers")->as_integer()});
      }
    }
    if (key == "until") record.until_step = value.as_integer();
    if (key == "started") record.started_ms = to_ms(value);
    if (key == "running") record.running_ms = to_ms(value);
    if (key == "unplaced") record.unplaced_ms = to_ms(value);
    if (key == "ended") record.ended_ms = to_ms(value);
    if (key == "last") record.last_step = value.as_integer();
    if (key == "failures") record.failures = value.as_integer();
    if (key == "earlier") record.earlier_seconds = value.as_double();
    if (key == "earlierGpu") record.earlier_gpu_seconds = value.as_double();
    if (key == "stopping") record.stopping = to_enum<api::Outcome>(value);
    if (key == "outcome") record.outcome = to_enum<api::Outcome>(value);
    if (key == "message") record.message = value.as_string();
    if (key == "reason") record.reason = value.as_string();
    if (key == "gpus") record.gpus = value.as_double();
    if (key == "gpuMemory") record.gpu_memory = gibibytes(value);
    if (key == "short") record.gpu_memory_short = gibibytes(value);
  }
  return record;
}

void check_keys(const Json& from, const std::set<std::string>& known) {
  for (const auto& [key, value] : from.as_object()) {
    CHECK(known.count(key) > 0, "unknown key '" + key + "' in " + from.dump());
  }
}

api::Sizing to_sizing(const Json& from) {
  check_keys(from, {"at", "workers", "noRoomAfter"});
  api::Sizing sizing{to_ms(*from.find("at")), from.find("workers")->as_integer(), std::nullopt};
  if (from.find("noRoomAfter")) sizing.no_room_after = from.find("noRoomAfter")->as_integer();
  return sizing;
}

api::Trial to_trial(const Json& from, const api::Study& study, std::int64_t index) {
  check_keys(from, {"index",    "x",       "phase",      "until",   "workers",   "stop", "suspend",
                    "records",  "facts",   "report",     "deleted", "bracket",   "rung", "parent",
                    "replaces", "repeats", "conditions", "sizing",  "gpuMemory", "width"});
  const auto find = [&from](const char* key) { return from.find(key); };
  api::Trial trial;
  trial.spec.study = study.metadata.name;
  trial.spec.index = find("index") ? find("index")->as_integer() : index;
  trial.metadata.name = trial_name(study.metadata.name, trial.spec.index);
  trial.spec.parameters = Json::object({{"x", find("x") ? *find("x") : Json(0.5)}});
  trial.spec.until_step = find("until") ? find("until")->as_integer() : study.spec.resource.max;
  if (find("bracket")) trial.spec.search.bracket = find("bracket")->as_integer();
  trial.spec.search.rung = find("rung") ? find("rung")->as_integer() : trial.spec.search.bracket;
  if (find("parent")) {
    const Json& parent = *find("parent");
    trial.spec.parent =
        api::Parent{parent.find("trial")->as_string(), parent.find("step")->as_integer()};
  }
  if (find("replaces")) trial.spec.search.replaces = find("replaces")->as_string();
  if (find("repeats")) trial.spec.search.replicates = find("repeats")->as_string();
  if (find("workers")) trial.spec.workers = find("workers")->as_integer();
  if (find("sizing")) trial.spec.sizing = to_sizing(*find("sizing"));
  if (find("stop")) trial.spec.stop = api::Stop{find("stop")->as_string(), "as decided", 0};
  if (find("gpuMemory")) trial.spec.gpu_memory = gibibytes(*find("gpuMemory"));
  if (find("width")) trial.spec.parameters.set("width", *find("width"));
  if (find("suspend")) trial.spec.suspend = find("suspend")->as_boolean();
  if (find("deleted")) trial.metadata.deleted_ms = to_ms(*find("deleted"));
  if (find("phase")) trial.status.phase = to_enum<api::TrialPhase>(*find("phase"));
  if (find("report")) trial.status.report = to_report(*find("report"));
  const Json no_conditions = Json::object();
  for (const auto& [type, reason] :
       (find("conditions") ? *find("conditions") : no_conditions).as_object()) {
    trial.status.conditions.push_back(
        {.type = type, .status = true, .reason = reason.as_string(), .message = {}});
  }
  const Json none = Json::array();
  for (const Json& fact : (find("facts") ? *find("facts") : none).as_array()) {
    trial.status.facts.push_back(to_fact(fact));
  }
  for (const Json& record : (find("records") ? *find("records") : none).as_array()) {
    trial.status.runs.push_back(to_record(record, trial.spec));
  }
  return trial;
}

Run to_run(const Json& from) {
  check_keys(from, {"run",     "state",     "outcome",        "workers",         "reason",
                    "silence", "started",   "seen",           "ended",           "report",
                    "uid",     "until",     "exitCode",       "heard",           "read",
                    "queued",  "short",     "workersRunning", "workersUnplaced", "terminating",
                    "gpus",    "readError", "presumed"});
  Run run;
  for (const auto& [key, value] : from.as_object()) {
    if (key == "run") run.id = value.as_integer();
    if (key == "workers") run.workers = value.as_integer();
    if (key == "workersUnplaced") run.unplaced_workers = value.as_integer();
    if (key == "gpus") run.gpus = value.as_double();
    if (key == "workersRunning") run.running_workers = value.as_integer();
    if (key == "terminating") run.terminating = value.as_boolean();
    if (key == "short") run.gpu_memory_short = gibibytes(value);
    if (key == "uid") run.pod_uid = value.as_string();
    if (key == "until") run.until_step = value.as_integer();
    if (key == "exitCode") run.exit_code = static_cast<int>(value.as_integer());
    if (key == "reason") run.reason = value.as_string();
    if (key == "silence") run.silence = value.as_string();
    if (key == "readError") run.read_error = value.as_string();
    if (key == "presumed") run.presumed = value.as_boolean();
    if (key == "started") run.started_ms = to_ms(value);
    if (key == "seen") run.seen_ms = to_ms(value);
    if (key == "ended") run.ended_ms = to_ms(value);
    if (key == "heard") run.heard_ms = to_ms(value);
    if (key == "read") run.read_ms = to_ms(value);
    if (key == "queued") run.queued = value.as_boolean();
    if (key == "report") run.report = to_report(value);
    if (key == "outcome") run.outcome = to_enum<api::Outcome>(value);
    if (key != "state") continue;
    const std::string& state = value.as_string();
    CHECK(state == "Pending" || state == "Running" || state == "Exited", "unknown state " + state);
    run.state = state == "Pending"   ? RunState::kPending
                : state == "Running" ? RunState::kRunning
                                     : RunState::kExited;
  }
  return run;
}

// `study` of a case: fields of the spec; `status` and `metadata` hold the other fields.
api::Study to_study(const Json* over) {
  Json document = parse_json(kStandardStudy).value();
  if (over != nullptr) {
    Json spec = *over;
    for (const char* part : {"status", "metadata"}) {
      const Json* found = over->find(part);
      if (found == nullptr) continue;
      Json wrapped = Json::object();
      wrapped.set(part, *found);
      merge_patch(document, wrapped);
      spec.erase(part);
    }
    merge_patch(*document.find("spec"), spec);
  }
  const api::ReadStudy read = api::read_study(document);
  for (const api::FieldError& error : read.errors) {
    CHECK(false, "study: " + error.path + ": " + error.message);
  }
  return read.study;
}

std::shared_ptr<const api::GpuChoice> to_choice(const Json& from) {
  check_keys(from, {"name", "gpus"});
  api::GpuChoice choice;
  choice.profile = from.find("name")->as_string();
  choice.gpus = from.find("gpus")->as_double();
  choice.reason = "profile " + choice.profile + " was chosen";
  return std::make_shared<const api::GpuChoice>(std::move(choice));
}

PlanCase to_case(const Json& from) {
  check_keys(from, {"case", "now", "study", "trials", "trial", "runs", "orphan", "capacity",
                    "waitingElsewhere", "mayGrow", "largestGpu", "gpusChanged", "gpuProfile",
                    "space", "expect"});
  PlanCase plan_case;
  plan_case.name = from.find("case")->as_string();
  plan_case.now_ms = to_ms(*from.find("now"));
  plan_case.study = to_study(from.find("study"));
  plan_case.is_study = from.find("trials") != nullptr;
  plan_case.orphan = from.find("orphan") != nullptr && from.find("orphan")->as_boolean();
  const Json* capacity = from.find("capacity");
  if (capacity != nullptr) plan_case.capacity.trials = capacity->as_integer();
  const Json* waiting = from.find("waitingElsewhere");
  if (waiting != nullptr) plan_case.capacity.waiting_elsewhere_ms = to_ms(*waiting);
  const Json* grow = from.find("mayGrow");
  plan_case.capacity.may_grow = grow == nullptr || grow->as_boolean();
  const Json* largest = from.find("largestGpu");
  if (largest != nullptr) plan_case.capacity.gpu_memory = gibibytes(*largest);
  const Json* changed = from.find("gpusChanged");
  if (changed != nullptr) plan_case.capacity.gpu_changed_ms = to_ms(*changed);
  if (const Json* profile = from.find("gpuProfile")) plan_case.capacity.gpu = to_choice(*profile);
  plan_case.space = from.find("space") ? from.find("space")->as_integer() : 1'000;
  if (plan_case.is_study) {
    std::int64_t index = 0;
    for (const Json& trial : from.find("trials")->as_array()) {
      plan_case.trials.push_back(
          std::make_shared<api::Trial>(to_trial(trial, plan_case.study, index++)));
    }
  } else {
    plan_case.trials.push_back(
        std::make_shared<api::Trial>(to_trial(*from.find("trial"), plan_case.study, 0)));
    const Json none = Json::array();
    for (const Json& run : (from.find("runs") ? *from.find("runs") : none).as_array()) {
      plan_case.runs.push_back(to_run(run));
    }
  }
  for (const Json& line : from.find("expect")->as_array()) {
    plan_case.expected.push_back(line.as_string());
  }
  return plan_case;
}

}  // namespace

std::vector<PlanCase> read_plan_cases(const std::string& path) {
  std::vector<PlanCase> cases;
  const YAML::Node document = YAML::LoadFile(path);
  for (const YAML::Node& node : document) {
    cases.push_back(to_case(to_json(node)));
    cases.back().file = path.substr(path.rfind('/') + 1);
  }
  return cases;
}

}  // namespace fettle::core
