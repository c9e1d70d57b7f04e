#include "runtime/local/process/run_host.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

#include "api/trial/worker_protocol.h"
#include "base/file.h"
#include "runtime/local/process/environment.h"
#include "runtime/local/process/process_tree.h"

namespace fettle::local {
namespace {

using runtime::WorkerFrame;
using Stream = OutputMetrics::Stream;

constexpr std::int64_t kMemoryIntervalMs = 100;
constexpr int kNonceWords = 4;  // of 32 bits
constexpr const char* kTookNone =
    "the program ended without taking a trial, so each trial starts a process of its own; for "
    "execution Warm take trials in `for trial in fettle.trials():`, or run the script as "
    "`python -m fettle.warm SCRIPT`; else use execution: Process";

std::string new_nonce() {
  std::random_device entropy;
  std::string nonce;
  for (int i = 0; i < kNonceWords; ++i) {
    std::array<char, 9> word{};
    std::snprintf(word.data(), word.size(), "%08x", entropy());
    nonce += word.data();
  }
  return nonce;
}

}  // namespace

RunHost::RunHost(const SupervisorCommand& command,
                 std::vector<std::vector<std::string>> environments, int lock_fd,
                 std::int64_t open_files, EventSink sink, std::int64_t now_ms)
    : sink_(std::move(sink)), worker_(command.worker), worker_log_path_(command.worker_log) {
  int assignments = -1;
  if (worker_ > 0) {
    const std::string nonce = new_nonce();
    frames_.emplace(nonce);
    assignments = assignments_.emplace().reading_end();
    std::vector<std::string>& environment = environments.front();
    set_variable(environment, "FETTLE_WORKER_FD", std::to_string(assignments));
    set_variable(environment, "FETTLE_WORKER_NONCE", nonce);
    set_variable(environment, "FETTLE_WORKER_VERSION", std::to_string(api::kWorkerProtocol));
    set_variable(environment, "FETTLE_WORKER_SLOTS", std::to_string(command.slots));
  }
  Assigned& first = runs_[name_in_protocol(key_of(command))];
  first.command = command;
  first.run = std::make_unique<HostedRun>(command, now_ms);
  current_ = name_in_protocol(key_of(command));
  process_.emplace(command, std::move(environments), lock_fd, open_files, assignments);
  if (!assignments_) return;
  assignments_->close_reading_end();
  assignments_->send(assignment_line(command));
}

void RunHost::add_polls(std::vector<pollfd>& polls) const {
  process_->add_polls(polls);
  if (assignments_) assignments_->add_poll(polls);
}

std::int64_t RunHost::wake_ms(bool with_reports) const {
  std::int64_t wake = process_->wake_ms();
  for (const auto& [name, assigned] : runs_) {
    if (assigned.kill_at_ms > 0 && !assigned.overdue) wake = std::min(wake, assigned.kill_at_ms);
    if (with_reports && assigned.run) {
      wake = std::min(wake, assigned.run->output().report_wake_ms());
    }
  }
  return wake;
}

// A run writes to standard error before it ends on standard output. So standard error is read after
// standard output, and dealt with before it.
void RunHost::read(std::int64_t now_ms) {
  std::string output;
  process_->read([&](std::string_view bytes) { output += bytes; },
                 [&](std::string_view bytes) { take_text(Stream::kErrors, bytes, now_ms); });
  take_output(output, now_ms);
  if (assignments_) assignments_->flush();
}

void RunHost::tick(std::int64_t now_ms) {
  if (process_->ended()) return;
  sample_oom_kills(now_ms);
  for (auto& [name, assigned] : runs_) {
    if (assigned.kill_at_ms == 0 || assigned.overdue || now_ms < assigned.kill_at_ms) continue;
    assigned.overdue = true;
    process_->kill(StopCause::kNone, now_ms);
  }
  judge(now_ms);
  process_->tick(now_ms);
}

void RunHost::report(std::int64_t now_ms) {
  for (auto& [name, assigned] : runs_) {
    if (!assigned.run || !assigned.run->output().report_due(now_ms)) continue;
    SupervisorEvent event = event_of(SupervisorEvent::Kind::kReport, key_of(assigned.command));
    event.report = assigned.run->output().take_report(now_ms);
    sink_(event);
  }
}

// ---- Commands ----------------------------------------------------------------------------------

void RunHost::assign(const SupervisorCommand& command) {
  runs_[name_in_protocol(key_of(command))].command = command;
  assignments_->send(assignment_line(command));
}

void RunHost::finish_worker(std::int64_t now_ms) {
  if (!is_ready_) return process_->stop(StopCause::kAsked, now_ms);  // it may not read its lines
  assignments_->finish();
}

void RunHost::stop_run(const RunKey& run, std::int64_t now_ms) {
  const auto found = runs_.find(name_in_protocol(run));
  if (found == runs_.end() || found->second.stops) return;
  Assigned& assigned = found->second;
  if (!is_ready_) return process_->stop(StopCause::kAsked, now_ms);
  assigned.stops = true;
  assignments_->send(stop_line(run));
  // A run that has not begun has its grace period once it begins.
  if (assigned.run) assigned.begin_grace(now_ms);
}

// ---- Output ------------------------------------------------------------------------------------

void RunHost::take_output(std::string_view text, std::int64_t now_ms) {
  if (!frames_) return take_text(Stream::kOutput, text, now_ms);
  const auto on_text = [&](std::string_view some) { take_text(Stream::kOutput, some, now_ms); };
  const std::int64_t malformed = frames_->malformed();
  frames_->feed(text, on_text, [&](const WorkerFrame& frame) { take_frame(frame, now_ms); });
  if (process_->ended()) frames_->finish(on_text);
  for (std::int64_t i = malformed; i < frames_->malformed(); ++i) object("a frame cannot be read");
  judge(now_ms);
}

// Text that belongs to no run alone goes to the worker's log, and to the logs of all its runs.
void RunHost::take_text(Stream stream, std::string_view text, std::int64_t now_ms) {
  if (text.empty()) return;
  const auto current = runs_.find(current_);
  if (current != runs_.end() && current->second.run) {
    return current->second.run->output().feed(stream, text, now_ms);
  }
  if (!worker_log_) worker_log_.emplace(worker_log_path_);
  worker_log_->append(text);
  for (auto& [name, assigned] : runs_) {
    if (assigned.run) assigned.run->output().log_only(text);
  }
}

void RunHost::take_frame(const WorkerFrame& frame, std::int64_t now_ms) {
  if (frame.word == WorkerFrame::Word::kReady) return take_ready(frame);
  const auto found = runs_.find(frame.run);
  if (found == runs_.end()) return object("it answered for " + frame.run + ", which it has not");
  Assigned& assigned = found->second;
  switch (frame.word) {
    case WorkerFrame::Word::kReady:
      return;
    case WorkerFrame::Word::kBegin:
      assigned.announced = true;
      return begin(assigned, now_ms);
    case WorkerFrame::Word::kLine:
      begin(assigned, now_ms);
      return assigned.run->output().feed(Stream::kOutput, frame.text + "\n", now_ms);
    case WorkerFrame::Word::kEnd:
      return end(assigned, frame.exit_code, now_ms);
    case WorkerFrame::Word::kRefuse:
      if (assigned.announced) return object("it refused " + frame.run + " after it began");
      return refuse(assigned, frame.text, /*by_worker=*/true);
  }
}

void RunHost::take_ready(const WorkerFrame& frame) {
  if (is_ready_) return object("it said twice that it is ready");
  is_ready_ = true;
  slots_ = frame.slots;
  current_.clear();
  SupervisorEvent event;
  event.kind = SupervisorEvent::Kind::kWorkerReady;
  event.worker = worker_;
  event.takes_arguments = frame.takes_arguments;
  sink_(event);
}

void RunHost::begin(Assigned& assigned, std::int64_t now_ms) {
  conduct_.answered();
  const RunKey key = key_of(assigned.command);
  if (slots_ == 1) current_ = name_in_protocol(key);
  if (assigned.run) return;
  assigned.run = std::make_unique<HostedRun>(assigned.command, now_ms);
  if (assigned.stops) assigned.begin_grace(now_ms);
  SupervisorEvent event = event_of(SupervisorEvent::Kind::kStarted, key);
  event.started_ms = now_ms;
  sink_(event);
}

void RunHost::end(Assigned& assigned, int exit_code, std::int64_t now_ms) {
  begin(assigned, now_ms);
  ProcessEnd as_process;
  as_process.report.wait_status = W_EXITCODE(exit_code, 0);
  as_process.report.peak_memory = memory(now_ms);
  as_process.cause = assigned.stops ? StopCause::kAsked : process_->end().cause;
  const RunKey key = assigned.run->key();
  SupervisorEvent event = event_of(SupervisorEvent::Kind::kExited, key);
  event.outcome = assigned.run->finish(as_process, "", now_ms);
  event.worker_memory = memory_;
  runs_.erase(name_in_protocol(key));
  if (slots_ == 1) current_.clear();
  sink_(event);
}

void RunHost::refuse(Assigned& assigned, const std::string& reason, bool by_worker) {
  const RunKey key = key_of(assigned.command);
  if (assigned.run) assigned.run->output().remove();
  SupervisorEvent event = event_of(SupervisorEvent::Kind::kRefused, key);
  event.reason = reason;
  event.worker = by_worker ? worker_ : 0;
  runs_.erase(name_in_protocol(key));
  sink_(event);
}

// A frame that does not fit is dropped. A worker that sends many of them is killed (judge).
void RunHost::object(const std::string& what) {
  conduct_.object(what);
  if (!worker_log_) worker_log_.emplace(worker_log_path_);
  worker_log_->append("fettle: " + what + " (docs/worker-protocol.md)\n");
}

std::int64_t RunHost::memory(std::int64_t now_ms) {
  if (now_ms < sampled_ms_ + kMemoryIntervalMs) return memory_;
  memory_ = tree_memory(process_->guard(), /*limit=*/0);
  sampled_ms_ = now_ms;
  return memory_;
}

// ---- The end of the process --------------------------------------------------------------------

// The resource that this machine lacked for the program to begin; "" = it began, or failed for
// another reason.
std::string RunHost::no_room() const {
  if (!process_->start_error().empty()) return process_->start_error();
  const ProcessEnd& end = process_->end();
  // A worker that came later may have failed to begin.
  const bool lacks_room = end.reported && end.report.failure == GuardReport::kNoRoom;
  const auto has_begun = [](const auto& entry) {
    return entry.second.run && entry.second.run->output().has_begun();
  };
  if (!lacks_room || std::ranges::any_of(runs_, has_begun)) return "";
  return "cannot make a process: " + system_message(end.report.error);
}

// Kills a worker that does not keep to the protocol.
void RunHost::judge(std::int64_t now_ms) {
  if (!is_ready_) return;
  const auto has_begun = [](const auto& entry) { return entry.second.run != nullptr; };
  const std::int64_t training = std::ranges::count_if(runs_, has_begun);
  const runtime::WorkerConduct::Signs signs{
      .is_mute = process_->output_ended(),
      .keeps_run_waiting =
          training < slots_ && training<std::ssize(runs_), .is_lost = assignments_->is_lost(),
                                        .prepares_first = slots_> 1};
  if (conduct_.becomes_unfit(signs, now_ms)) process_->kill(StopCause::kNone, now_ms);
}

RunOutcome RunHost::outcome_by_process(Assigned& assigned, bool is_alone, std::int64_t now_ms) {
  ProcessEnd end = process_->end();
  if (!conduct_.fault().empty()) {
    return assigned.run->end_as(
        conduct_.blames_its_runs() ? api::Outcome::kFailed : api::Outcome::kDisrupted,
        "its worker was killed, since " + conduct_.fault(), now_ms);
  }
  if (!is_alone && !assigned.overdue && end.cause == StopCause::kNone) {
    return assigned.run->end_as(
        api::Outcome::kDisrupted,
        "its worker ended while it trained several trials, and the cause is not known; it is "
        "repeated in a process of its own",
        now_ms);
  }
  if (assigned.stops) end.cause = StopCause::kAsked;
  end.killed_after_grace = end.killed_after_grace || assigned.overdue;
  std::string remark;
  const bool exited_well = end.reported && end.report.failure == GuardReport::kNone &&
                           end.report.wait_status == 0 && end.cause == StopCause::kNone;
  if (worker_ > 0 && !is_ready_ && exited_well) remark = kTookNone;
  return assigned.run->finish(end, remark, now_ms);
}

bool RunHost::collect(std::int64_t now_ms) {
  bool disrupted = false;
  const std::string missing = no_room();
  if (worker_ > 0) {  // first, so that the runner gives it no further run
    SupervisorEvent ended;
    ended.kind = SupervisorEvent::Kind::kWorkerEnded;
    ended.worker = worker_;
    sink_(ended);
  }
  const auto training =
      std::ranges::count_if(runs_, [](const auto& entry) { return entry.second.run != nullptr; });
  while (!runs_.empty()) {
    Assigned& assigned = runs_.begin()->second;
    if (!missing.empty() || !assigned.run) {
      refuse(assigned, missing.empty() ? "its worker has ended" : missing, /*by_worker=*/false);
      continue;
    }
    SupervisorEvent event = event_of(SupervisorEvent::Kind::kExited, assigned.run->key());
    event.outcome = outcome_by_process(assigned, training == 1, now_ms);
    disrupted = disrupted || event.outcome->outcome == api::Outcome::kDisrupted;
    runs_.erase(runs_.begin());
    sink_(event);
  }
  return disrupted || !process_->end().reported;
}

}  // namespace fettle::local
