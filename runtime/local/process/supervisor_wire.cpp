#include "runtime/local/process/supervisor_wire.h"

#include <map>
#include <string_view>

#include "api/names.h"
#include "api/trial_json.h"

namespace fettle::local {
namespace {

template <class Kind>
struct KindName {
  Kind kind;
  std::string_view name;
};

constexpr KindName<SupervisorCommand::Kind> kCommands[] = {
    {SupervisorCommand::Kind::kHello, "hello"},       {SupervisorCommand::Kind::kStart, "start"},
    {SupervisorCommand::Kind::kResize, "resize"},     {SupervisorCommand::Kind::kStop, "stop"},
    {SupervisorCommand::Kind::kShutdown, "shutdown"}, {SupervisorCommand::Kind::kKill, "kill"},
};

constexpr KindName<SupervisorEvent::Kind> kEvents[] = {
    {SupervisorEvent::Kind::kReady, "ready"},     {SupervisorEvent::Kind::kStarted, "started"},
    {SupervisorEvent::Kind::kRefused, "refused"}, {SupervisorEvent::Kind::kReport, "report"},
    {SupervisorEvent::Kind::kExited, "exited"},
};

template <class Kind, std::size_t n>
std::string_view name_of(Kind kind, const KindName<Kind> (&table)[n]) {
  for (const auto& entry : table) {
    if (entry.kind == kind) return entry.name;
  }
  return "";
}

template <class Kind, std::size_t n>
std::optional<Kind> kind_of(std::string_view name, const KindName<Kind> (&table)[n]) {
  for (const auto& entry : table) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

// Members of a message; an absent one or one of another type reads as the default.
std::string text(const Json& object, std::string_view key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : "";
}

std::int64_t integer(const Json& object, std::string_view key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_integer() ? member->as_integer() : 0;
}

std::optional<int> optional_integer(const Json& object, std::string_view key) {
  const Json* const member = object.find(key);
  if (member == nullptr || !member->is_integer()) return std::nullopt;
  return static_cast<int>(member->as_integer());
}

const Json::Array& list(const Json& object, std::string_view key) {
  static const Json::Array kNone;
  const Json* const member = object.find(key);
  return member != nullptr && member->is_array() ? member->as_array() : kNone;
}

Result<std::optional<api::Report>> optional_report(const Json& object) {
  const Json* const member = object.find("report");
  if (member == nullptr || member->is_null()) return std::optional<api::Report>();
  FETTLE_ASSIGN(api::Report report, api::read_report(*member));
  return std::optional<api::Report>(std::move(report));
}

Json write_texts(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& item : texts) out.push_back(item);
  return out;
}

std::vector<std::string> texts(const Json& object, std::string_view key) {
  std::vector<std::string> out;
  for (const Json& item : list(object, key)) {
    if (item.is_string()) out.push_back(item.as_string());
  }
  return out;
}

Json write_variables(const Variables& variables) {
  Json out = Json::array();
  for (const auto& [name, value] : variables) out.push_back(Json(Json::Array{name, value}));
  return out;
}

Status read_variables(const Json::Array& pairs, Variables& out) {
  for (const Json& pair : pairs) {
    const bool good = pair.is_array() && pair.as_array().size() == 2 &&
                      pair.as_array()[0].is_string() && pair.as_array()[1].is_string();
    if (!good) return invalid("environment: expected pairs of strings");
    out.emplace_back(pair.as_array()[0].as_string(), pair.as_array()[1].as_string());
  }
  return success();
}

Json write_metrics(const runtime::MetricLinesOptions& options) {
  Json rungs = Json::array();
  for (const std::int64_t rung : options.rungs) rungs.push_back(rung);
  Json objectives = Json::array();
  for (const api::Objective& objective : options.objectives) {
    objectives.push_back(Json::object(
        {{"metric", objective.metric}, {"direction", api::to_string(objective.direction)}}));
  }
  return Json::object({{"regex", options.filter.regex},
                       {"stepRegex", options.filter.step},
                       {"firstStep", options.filter.first_step},
                       {"rungs", std::move(rungs)},
                       {"objectives", std::move(objectives)},
                       {"constraints", write_texts(options.constraints)}});
}

void write_start(const SupervisorCommand& command, Json& out) {
  Json workers = Json::array();
  for (const Variables& worker : command.workers) workers.push_back(write_variables(worker));
  out.set("podUid", command.pod_uid)
      .set("runDirectory", command.run_directory)
      .set("claimFile", command.claim_file)
      .set("arguments", write_texts(command.arguments))
      .set("environment", write_variables(command.environment))
      .set("workers", std::move(workers))
      .set("leastWorkers", command.least_workers)
      .set("open", command.open)
      .set("directory", command.directory)
      .set("memoryLimit", command.memory_limit)
      .set("graceMs", command.grace_ms)
      .set("passEnvironment", write_texts(command.pass_environment))
      .set("metrics", write_metrics(command.metrics));
}

Status read_metrics(const Json& object, runtime::MetricLinesOptions& out) {
  out.filter = {text(object, "regex"), text(object, "stepRegex"), integer(object, "firstStep")};
  for (const Json& rung : list(object, "rungs")) {
    if (rung.is_integer()) out.rungs.push_back(rung.as_integer());
  }
  for (const Json& item : list(object, "objectives")) {
    const auto direction = api::from_string<api::Direction>(text(item, "direction"));
    if (!direction) return invalid("objectives: expected a metric and a direction each");
    api::Objective objective;
    objective.metric = text(item, "metric");
    objective.direction = *direction;
    out.objectives.push_back(std::move(objective));
  }
  out.constraints = texts(object, "constraints");
  return success();
}

Status read_start(const Json& object, SupervisorCommand& out) {
  out.pod_uid = text(object, "podUid");
  out.run_directory = text(object, "runDirectory");
  out.claim_file = text(object, "claimFile");
  out.arguments = texts(object, "arguments");
  FETTLE_TRY(read_variables(list(object, "environment"), out.environment));
  for (const Json& worker : list(object, "workers")) {
    if (!worker.is_array()) return invalid("workers: expected lists of variables");
    FETTLE_TRY(read_variables(worker.as_array(), out.workers.emplace_back()));
  }
  out.least_workers = integer(object, "leastWorkers");
  const Json* const open = object.find("open");
  out.open = open != nullptr && open->is_boolean() && open->as_boolean();
  out.directory = text(object, "directory");
  out.memory_limit = integer(object, "memoryLimit");
  out.grace_ms = integer(object, "graceMs");
  out.pass_environment = texts(object, "passEnvironment");
  const Json* const metrics = object.find("metrics");
  if (metrics != nullptr) FETTLE_TRY(read_metrics(*metrics, out.metrics));
  if (out.arguments.empty()) return invalid("start: expected a command");
  return success();
}

}  // namespace

std::string write_command(const SupervisorCommand& command) {
  Json out = Json::object({{"command", name_of(command.kind, kCommands)},
                           {"trial", command.trial},
                           {"run", command.run},
                           {"workerCount", command.worker_count}});
  if (command.kind == SupervisorCommand::Kind::kHello) {
    out.set("studyDirectory", command.study_directory).set("lockFd", command.lock_fd);
  }
  if (command.kind == SupervisorCommand::Kind::kStart) write_start(command, out);
  return out.dump() + "\n";
}

Result<SupervisorCommand> read_command(const std::string& line) {
  FETTLE_ASSIGN(const Json object, parse_json(line));
  const auto kind = kind_of(text(object, "command"), kCommands);
  if (!kind) return invalid("expected a command, found " + line.substr(0, 80));
  SupervisorCommand out;
  out.kind = *kind;
  out.trial = text(object, "trial");
  out.run = integer(object, "run");
  out.worker_count = integer(object, "workerCount");
  out.study_directory = text(object, "studyDirectory");
  out.lock_fd = optional_integer(object, "lockFd").value_or(-1);
  if (*kind == SupervisorCommand::Kind::kStart) FETTLE_TRY(read_start(object, out));
  return out;
}

std::string write_event(const SupervisorEvent& event) {
  Json out = Json::object({{"event", name_of(event.kind, kEvents)},
                           {"trial", event.trial},
                           {"run", event.run},
                           {"startedMs", event.started_ms}});
  if (event.report) out.set("report", api::write_report(*event.report));
  if (event.outcome) out.set("outcome", write_outcome(*event.outcome));
  if (!event.reason.empty()) out.set("reason", event.reason);
  return out.dump() + "\n";
}

Result<SupervisorEvent> read_event(const std::string& line) {
  FETTLE_ASSIGN(const Json object, parse_json(line));
  const auto kind = kind_of(text(object, "event"), kEvents);
  if (!kind) return invalid("expected an event, found " + line.substr(0, 80));
  SupervisorEvent out;
  out.kind = *kind;
  out.trial = text(object, "trial");
  out.run = integer(object, "run");
  out.started_ms = integer(object, "startedMs");
  out.reason = text(object, "reason");
  FETTLE_ASSIGN(out.report, optional_report(object));
  if (const Json* const outcome = object.find("outcome")) {
    FETTLE_ASSIGN(out.outcome, read_outcome(*outcome));
  }
  return out;
}

Json write_outcome(const RunOutcome& outcome) {
  Json out = Json::object({{"outcome", api::to_string(outcome.outcome)},
                           {"message", outcome.message},
                           {"silence", outcome.silence},
                           {"podUid", outcome.pod_uid},
                           {"startedMs", outcome.started_ms},
                           {"endedMs", outcome.ended_ms},
                           {"peakMemoryBytes", outcome.peak_memory}});
  if (outcome.exit_code) out.set("exitCode", *outcome.exit_code);
  if (outcome.signal) out.set("signal", *outcome.signal);
  if (outcome.report) out.set("report", api::write_report(*outcome.report));
  return out;
}

Result<RunOutcome> read_outcome(const Json& document) {
  const std::string name = text(document, "outcome");
  const auto outcome = api::from_string<api::Outcome>(name);
  if (!outcome) return invalid("outcome: expected how a run ended, found \"" + name + "\"");
  RunOutcome out;
  out.outcome = *outcome;
  out.message = text(document, "message");
  out.silence = text(document, "silence");
  out.pod_uid = text(document, "podUid");
  out.exit_code = optional_integer(document, "exitCode");
  out.signal = optional_integer(document, "signal");
  out.started_ms = integer(document, "startedMs");
  out.ended_ms = integer(document, "endedMs");
  out.peak_memory = integer(document, "peakMemoryBytes");
  FETTLE_ASSIGN(out.report, optional_report(document));
  return out;
}

}  // namespace fettle::local
