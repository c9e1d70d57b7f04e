// The messages between runner and supervisor: JSON objects, one a line, over a stream socket.
//
// Both ends are the same executable, so there is no version to negotiate. A line is at most
// kMaxMessageBytes; a longer or unreadable one means that the other end is broken. The fields of a
// message are listed once, in supervisor_wire.cpp (api/fields/field.h). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/result.h"
#include "runtime/metric_lines.h"

namespace fettle::local {

inline constexpr std::size_t kMaxMessageBytes = 4 << 20;

// An environment variable.
struct Variable {
  std::string name;
  std::string value;
  bool operator==(const Variable&) const = default;
};
using Variables = std::vector<Variable>;

using RunKey = std::pair<std::string, std::int64_t>;  // trial, run

// Runner to supervisor.
struct SupervisorCommand {
  enum class Kind {
    kHello,      // first: study_directory, lock_fd
    kStart,      // trial, run and everything below; with `worker`, its first run
    kAssign,     // trial, run and everything of that run, to `worker`
    kEndWorker,  // worker: no further runs
    kResize,     // trial, run, worker_count
    kStop,       // trial, run: SIGTERM, after the grace period SIGKILL
    kShutdown,   // stop every run, then exit
    kKill,       // SIGKILL to every run now
  };
  Kind kind = Kind::kHello;

  std::string study_directory;
  std::int64_t lock_fd = -1;

  std::int64_t worker = 0;  // number of the worker; 0: a process of its own
  std::int64_t slots = 1;   // runs that the worker trains at once
  std::string worker_log;   // path: its output between runs
  std::string trial;
  std::int64_t run = 0;
  std::string pod_uid;                 // the value of FETTLE_POD_UID
  std::string run_directory;           // exists; log and outcome go there
  std::string claim_file;              // held by the guard (claims.h); "" = none
  std::vector<std::string> arguments;  // arguments[0] is looked up in the trial's PATH
  Variables environment;               // of all workers
  // Additional variables of each possible worker, by rank; empty: one worker without any.
  std::vector<Variables> workers;
  std::int64_t worker_count = 1;   // wanted workers
  bool open = false;               // their number may change, and a killed worker is replaced
  std::int64_t least_workers = 1;  // the fewest that can continue when others fail, with worker 0
  std::string directory;           // working directory; "" = the supervisor's
  std::int64_t memory_limit = 0;   // bytes, as tree_memory counts them; 0 = none
  std::int64_t grace_ms = 0;
  std::vector<std::string> pass_environment;  // names of variables of the supervisor's own
  runtime::MetricLinesOptions metrics;
};

// How a run ended: the contents of outcome.json.
struct RunOutcome {
  std::string pod_uid;  // tells the runs of equally named trials apart
  api::Outcome outcome = api::Outcome::kFailed;
  bool presumed = false;  // Disrupted, and only the exit code says so
  std::string message;    // for people
  std::string silence;    // without a report: why its output gave none
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> signal;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
  std::int64_t peak_memory = 0;  // bytes of the process tree, mapped files excepted
  std::optional<api::Report> report;
};

// Supervisor to runner.
struct SupervisorEvent {
  enum class Kind {
    kReady,
    kStarted,
    kRefused,  // this machine has no room for it now: it did not begin
    kReport,
    kExited,
    kWorkerReady,  // worker
    kWorkerEnded,  // worker: none of its processes is left
  };
  Kind kind = Kind::kReady;
  std::string trial;
  std::int64_t run = 0;
  std::int64_t started_ms = 0;        // kStarted
  std::optional<api::Report> report;  // kReport
  std::optional<RunOutcome> outcome;  // kExited
  std::string reason;                 // kRefused: the missing resource
  std::int64_t worker = 0;            // kWorkerReady, kWorkerEnded; kRefused: it refused
  bool takes_arguments = false;       // kWorkerReady: each run may have arguments of its own
  std::int64_t worker_memory = 0;     // kExited: bytes that the worker holds; 0 = unknown
};

inline RunKey key_of(const SupervisorCommand& command) { return {command.trial, command.run}; }
SupervisorEvent event_of(SupervisorEvent::Kind kind, const RunKey& run);

std::string write_command(const SupervisorCommand& command);  // ends in a newline
Result<SupervisorCommand> read_command(const std::string& line);
std::string write_event(const SupervisorEvent& event);  // ends in a newline
Result<SupervisorEvent> read_event(const std::string& line);

Json write_outcome(const RunOutcome& outcome);
// Also reads an outcome that another version of fettle wrote.
Result<RunOutcome> read_outcome(const Json& document);

api::EnumNames<SupervisorCommand::Kind> names_of(SupervisorCommand::Kind);
api::EnumNames<SupervisorEvent::Kind> names_of(SupervisorEvent::Kind);

}  // namespace fettle::local
