// A process does one thing at a time, at its next_ms.
#include "tests/sim/sim_runs.h"

#include <algorithm>

#include "api/trial/report.h"
#include "base/check.h"
#include "core/names.h"

namespace fettle::sim {

using core::Run;
using core::RunState;

Status SimRuns::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  faults_.before_write();
  if (!refusal_.empty()) return invalid(refusal_);
  const std::string& name = trial.metadata.name;
  const Id id{name, run};
  if (processes_.count(id) == 0) {
    CHECK(ever_[id]++ == 0, "run " + core::run_name(name, run) + " was started a second time");
    check_alone(name);
    if (trial.spec.parent && checkpoints_.count(name) == 0) {
      const api::Parent& parent = *trial.spec.parent;
      const std::int64_t newest = checkpoints_[parent.trial];
      CHECK(newest >= parent.step || quit_.count(parent.trial) > 0,
            "the parent has not been there");
      checkpoints_[name] = std::min(newest, parent.step);
    }
    const bool promoted = trial.spec.until_step > checkpoints_[name];
    CHECK(finished_[name] == 0 || promoted, "a completed trial was started again");
    Process process;
    process.run.id = run;
    process.run.workers = trial.spec.workers;
    process.index = trial.spec.index;
    process.until_step = trial.spec.until_step;
    process.run.until_step = trial.spec.until_step;
    process.metric = study.spec.objectives.front().metric;
    process.parameters = trial.spec.parameters;
    process.script = scripts_(trial.spec.index, run);
    const bool found = api::checkpoints_survive(study.spec, capacity_.place);
    process.step = found ? checkpoints_[name] : 0;
    process.next_ms = clock_.now_ms() + kStartMs;
    process.asked = trial.spec.gpu_memory.value_or(cards_.bytes);
    processes_[id] = std::move(process);
    const auto alive = std::count_if(processes_.begin(), processes_.end(), [](const auto& entry) {
      return entry.second.run.state != RunState::kExited;
    });
    most_at_once_ = std::max<std::int64_t>(most_at_once_, alive);
  }
  faults_.after_write();
  return success();
}

void SimRuns::check_alone(const std::string& trial) const {
  for (const auto& [id, process] : processes_) {
    CHECK(id.first != trial || process.run.state == RunState::kExited,
          "two living runs of " + trial);
  }
}

Status SimRuns::resize(const api::Trial&, std::int64_t, std::int64_t) {
  faults_.before_write();
  faults_.after_write();
  return success();
}

Status SimRuns::stop(const api::Trial& trial, std::int64_t run) {
  faults_.before_write();
  const auto found = processes_.find({trial.metadata.name, run});
  if (found != processes_.end() && !found->second.stopping &&
      found->second.run.state != RunState::kExited) {
    found->second.stopping = true;
    found->second.next_ms = clock_.now_ms() + kStopMs;
  }
  faults_.after_write();
  return success();
}

Status SimRuns::remove(const api::Trial& trial, std::int64_t run) {
  faults_.before_write();
  const auto found = processes_.find({trial.metadata.name, run});
  if (found != processes_.end()) {
    CHECK(found->second.run.state == RunState::kExited, "a living run was removed");
    processes_.erase(found);
  }
  faults_.after_write();
  return success();
}

Result<std::vector<Run>> SimRuns::observe(const api::Trial& trial) {
  std::vector<Run> runs;
  for (const auto& [id, process] : processes_) {
    if (id.first == trial.metadata.name) runs.push_back(process.run);
  }
  return runs;
}

core::Capacity SimRuns::capacity(const api::Study&) { return capacity_; }

void SimRuns::watch(std::function<void(const std::string&)> listener) {
  listener_ = std::move(listener);
}

void SimRuns::forget(const std::string& trial) {
  std::erase_if(processes_, [&](const auto& entry) { return entry.first.first == trial; });
  std::erase_if(ever_, [&](const auto& entry) { return entry.first.first == trial; });
  checkpoints_.erase(trial);
  finished_.erase(trial);
}

void SimRuns::advance() {
  for (auto& [id, process] : processes_) {
    if (process.next_ms < 0 || process.next_ms > clock_.now_ms()) continue;
    advance(id.first, process);
    if (listener_ && !lose_events_) listener_(id.first);
  }
}

std::int64_t SimRuns::next_ms() const {
  std::int64_t next = -1;
  for (const auto& [id, process] : processes_) {
    if (process.next_ms >= 0 && (next < 0 || process.next_ms < next)) next = process.next_ms;
  }
  return next;
}

std::int64_t SimRuns::finished(const std::string& trial) const {
  const auto found = finished_.find(trial);
  return found == finished_.end() ? 0 : found->second;
}

void SimRuns::advance(const std::string& trial, Process& process) {
  if (process.stopping) return exit(process, api::Outcome::kStopped, "exit code 143");
  if (process.run.state == RunState::kPending) {
    if (!find_card(process)) return;
    process.run.state = RunState::kRunning;
    process.run.started_ms = clock_.now_ms();
    process.run.pod_uid = core::run_name(trial, process.run.id);
    process.next_ms = clock_.now_ms() + step_ms(process.index);
    return;
  }
  if (!fits_card(process)) return;
  const bool fated = process.script.fate != Fate::kFinish && process.script.steps-- == 0;
  if (!fated) return take_step(trial, process);
  switch (process.script.fate) {
    case Fate::kFail:
      return exit(process, api::Outcome::kFailed, "exit code 3: no luck");
    case Fate::kDisrupt:
      return exit(process, api::Outcome::kDisrupted, "the node is gone");
    case Fate::kOutOfMemory:
      return exit(process, api::Outcome::kOutOfMemory, "used more than its 1Gi of memory");
    case Fate::kSilent:
      process.run.report.reset();
      return exit(process, api::Outcome::kSucceeded, "exit code 0");
    case Fate::kQuit:
      quit_.insert(trial);
      return exit(process, api::Outcome::kSucceeded, "exit code 0");
    case Fate::kHang:
    case Fate::kFinish:
      process.next_ms = -1;
      return;
  }
}

void SimRuns::set_cards(Cards cards) {
  cards_ = std::move(cards);
  free_.assign(static_cast<std::size_t>(cards_.count), cards_.bytes);
  capacity_.gpu_memory = cards_.bytes;
}

// Takes the first card with enough memory, like a scheduler that packs; false: it waits, and asks
// again.
bool SimRuns::find_card(Process& process) {
  if (cards_.count == 0) return true;
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](double free) { return free >= process.asked; });
  if (found == free_.end()) {
    process.run.reason = "no node has room for it";
    process.next_ms = clock_.now_ms() + kStartMs;
    return false;
  }
  *found -= process.asked;
  process.on = static_cast<std::size_t>(found - free_.begin());
  process.run.reason.clear();
  return true;
}

// The trainer refuses to begin with less than it plans for; a trainer that needs more than it has
// planned ends in the middle.
bool SimRuns::fits_card(Process& process) {
  if (cards_.count == 0) return true;
  const double planned = cards_.planned(process.parameters);
  const bool begins = planned <= process.asked;
  if (begins && cards_.used(process.parameters) <= process.asked) {
    const auto training = std::count_if(processes_.begin(), processes_.end(), [](const auto& one) {
      return one.second.run.state == RunState::kRunning;
    });
    most_training_ = std::max<std::int64_t>(most_training_, training);
    return true;
  }
  process.run.gpu_memory_short = begins ? 0 : planned;
  exit(process, api::Outcome::kOutOfMemory, "out of the GPU's memory");
  return false;
}

void SimRuns::take_step(const std::string& trial, Process& process) {
  if (process.step < process.until_step) {
    checkpoints_[trial] = ++process.step;
    ++steps_taken_;
    if (process.step % process.script.every == 0) report(process);
  }
  if (process.step < process.until_step) {
    process.next_ms = clock_.now_ms() + step_ms(process.index);
    return;
  }
  if (process.run.report && process.script.every == 1) process.run.report->final_result = true;
  ++finished_[trial];
  exit(process, api::Outcome::kSucceeded, "exit code 0");
}

void SimRuns::report(Process& process) const {
  api::Report report = process.run.report.value_or(api::Report{});
  report.step = process.step;
  report.metrics = {{process.metric, curve_(process.parameters, process.step)}};
  if (cards_.count > 0) {
    report.metrics[api::kGpuMemoryPlanned] = cards_.planned(process.parameters);
    report.metrics[api::kGpuMemoryUsed] = cards_.used(process.parameters);
  }
  report.history.push_back({report.step, report.metrics});
  report.checkpoint = "step-" + std::to_string(process.step);
  report.checkpoint_step = process.step;
  report.at_ms = clock_.now_ms();
  process.run.report = std::move(report);
}

void SimRuns::exit(Process& process, api::Outcome outcome, const std::string& reason) {
  process.run.state = RunState::kExited;
  process.run.outcome = outcome;
  process.run.reason = reason;
  process.run.ended_ms = clock_.now_ms();
  process.next_ms = -1;
  if (process.on) free_[*process.on] += process.asked;
  process.on.reset();
}

}  // namespace fettle::sim
