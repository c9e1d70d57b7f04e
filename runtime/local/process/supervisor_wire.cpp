#include "runtime/local/process/supervisor_wire.h"

#include <tuple>

#include "api/fields/field_document.h"
#include "api/fields/field_writer.h"
#include "api/trial/trial_fields.h"
#include "api/trial/trial_json.h"

namespace fettle::local {

using api::FieldRules;
using api::Like;
using Command = SupervisorCommand::Kind;
using Event = SupervisorEvent::Kind;

constexpr api::EnumName<Command> kCommands[] = {
    {Command::kHello, "hello"},         {Command::kStart, "start"},   {Command::kAssign, "assign"},
    {Command::kEndWorker, "endWorker"}, {Command::kResize, "resize"}, {Command::kStop, "stop"},
    {Command::kShutdown, "shutdown"},   {Command::kKill, "kill"},
};
constexpr api::EnumName<Event> kEvents[] = {
    {Event::kReady, "ready"},
    {Event::kStarted, "started"},
    {Event::kRefused, "refused"},
    {Event::kReport, "report"},
    {Event::kExited, "exited"},
    {Event::kWorkerReady, "workerReady"},
    {Event::kWorkerEnded, "workerEnded"},
};

// Messages of fettle itself are read without bounds, like another version's outcome.
constexpr auto kTrusted = api::UnknownFields::kIgnoredWithBounds;

template <class Visitor, Like<Variable> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "Its name.", FieldRules{}.needed());
  v.field("value", c.value, "Its value.");
}

template <class Visitor, Like<SupervisorCommand> T>
void visit_fields(Visitor& v, T& c) {
  v.field("command", c.kind, "What is to be done.", FieldRules{}.needed());
  v.field("studyDirectory", c.study_directory, "Whose processes are cleaned up.");
  v.field("lockFd", c.lock_fd, "The Study's lock, inherited.");
  v.field("worker", c.worker, "The number of the worker.");
  v.field("slots", c.slots, "Runs that the worker trains at once.");
  v.field("workerLog", c.worker_log, "Log of the worker itself.");
  v.field("trial", c.trial, "The name of the trial.");
  v.field("run", c.run, "The run of the trial.");
  v.field("podUid", c.pod_uid, "What FETTLE_POD_UID says.");
  v.field("runDirectory", c.run_directory, "Where log and outcome go.");
  v.field("claimFile", c.claim_file, "What the guard holds.");
  v.field("arguments", c.arguments, "The command line.");
  v.field("environment", c.environment, "Variables of all workers.");
  v.field("workers", c.workers, "Variables of each worker, by rank.");
  v.field("workerCount", c.worker_count, "Workers that are to run.");
  v.field("open", c.open, "Whether their number may change.");
  v.field("leastWorkers", c.least_workers, "The fewest that can continue.");
  v.field("directory", c.directory, "The working directory.");
  v.field("memoryLimit", c.memory_limit, "Bytes.");
  v.field("graceMs", c.grace_ms, "Between SIGTERM and SIGKILL.");
  v.field("passEnvironment", c.pass_environment, "Variables of the supervisor's own.");
  v.field("regex", c.metrics.filter.regex, "How lines are read.");
  v.field("stepRegex", c.metrics.filter.step, "How their step is read.");
  v.field("firstStep", c.metrics.filter.first_step, "What the program calls its first step.");
  v.field("rungs", c.metrics.rungs, "Steps whose values are kept.");
  v.field("objectives", c.metrics.objectives, "Metrics that decide.");
  v.field("constraints", c.metrics.constraints, "Other metrics that the Study asks for.");
}

template <class Visitor, Like<RunOutcome> T>
void visit_fields(Visitor& v, T& c) {
  v.field("outcome", c.outcome, "How the run ended.", FieldRules{}.needed());
  v.field("message", c.message, "For people.");
  v.field("presumed", c.presumed, "Disrupted, and only its exit code says so.");
  v.field("silence", c.silence, "Why its output gave no report.");
  v.field("podUid", c.pod_uid, "Tells equally named runs apart.");
  v.field("startedMs", c.started_ms, "Unix milliseconds.");
  v.field("endedMs", c.ended_ms, "Unix milliseconds.");
  v.field("peakMemoryBytes", c.peak_memory, "Of the process tree.");
  v.field("exitCode", c.exit_code, "Where it exited.");
  v.field("signal", c.signal, "Where a signal killed it.");
  v.field("report", c.report, "The newest.");
}

template <class Visitor, Like<SupervisorEvent> T>
void visit_fields(Visitor& v, T& c) {
  v.field("event", c.kind, "What happened.", FieldRules{}.needed());
  v.field("trial", c.trial, "The name of the trial.");
  v.field("run", c.run, "The run of the trial.");
  v.field("startedMs", c.started_ms, "Unix milliseconds.");
  v.field("report", c.report, "The newest.");
  v.field("outcome", c.outcome, "How the run ended.");
  v.field("reason", c.reason, "What is missing.");
  v.field("worker", c.worker, "The number of the worker.");
  v.field("takesArguments", c.takes_arguments, "Whether runs may differ in their arguments.");
  v.field("workerMemory", c.worker_memory, "Bytes that the worker holds.");
}

SupervisorEvent event_of(SupervisorEvent::Kind kind, const RunKey& run) {
  SupervisorEvent event;
  event.kind = kind;
  std::tie(event.trial, event.run) = run;
  return event;
}

std::string write_command(const SupervisorCommand& command) {
  return api::write_struct(command).dump() + "\n";
}

Result<SupervisorCommand> read_command(const std::string& line) {
  FETTLE_ASSIGN(const Json document, parse_json(line));
  FETTLE_ASSIGN(SupervisorCommand command,
                api::read_document<SupervisorCommand>(document, kTrusted));
  const bool starts_a_run = command.kind == Command::kStart || command.kind == Command::kAssign;
  if (starts_a_run && command.arguments.empty()) return invalid("start: expected a command");
  return command;
}

std::string write_event(const SupervisorEvent& event) {
  return api::write_struct(event).dump() + "\n";
}

Result<SupervisorEvent> read_event(const std::string& line) {
  FETTLE_ASSIGN(const Json document, parse_json(line));
  return api::read_document<SupervisorEvent>(document, kTrusted);
}

Json write_outcome(const RunOutcome& outcome) { return api::write_struct(outcome); }

Result<RunOutcome> read_outcome(const Json& document) {
  FETTLE_ASSIGN(RunOutcome outcome, api::read_document<RunOutcome>(document, kTrusted));
  // The curve of a report is bounded as a whole, too, and so is the store that it goes to.
  if (outcome.report) FETTLE_TRY(api::read_report(api::write_report(*outcome.report)));
  return outcome;
}

api::EnumNames<Command> names_of(Command /*any*/) { return kCommands; }
api::EnumNames<Event> names_of(Event /*any*/) { return kEvents; }

}  // namespace fettle::local
