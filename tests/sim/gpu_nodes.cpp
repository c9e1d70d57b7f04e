#include "tests/sim/gpu_nodes.h"

#include <algorithm>
#include <cmath>

#include "core/names.h"

namespace fettle::sim {

using core::Run;
using core::RunState;

GpuNodes::GpuNodes(control::Clock& clock, std::vector<NodeChange> changes, Work work, Curve curve)
    : clock_(clock),
      changes_(std::move(changes)),
      work_(std::move(work)),
      curve_(std::move(curve)),
      spent_until_ms_(clock.now_ms()) {
  change_nodes();
}

Status GpuNodes::start(const api::Study& study, const api::Trial& trial, std::int64_t run) {
  const Id id{trial.metadata.name, run};
  if (processes_.count(id) > 0) return success();
  const api::Workers& workers = study.spec.trial.workers;
  Process process;
  process.run.id = run;
  process.run.workers = trial.spec.workers;
  process.run.until_step = trial.spec.until_step;
  process.metric = study.spec.objectives.front().metric;
  process.parameters = trial.spec.parameters;
  process.work = work_(trial.spec.index);
  process.least = workers.min;
  process.fixed = workers.min == workers.max;
  process.step = checkpoints_[trial.metadata.name];
  process.asked = ++asked_;
  processes_[id] = std::move(process);
  place();
  return success();
}

// Takes workers of the highest ranks away.
Status GpuNodes::resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) {
  const auto found = processes_.find({trial.metadata.name, run});
  if (found == processes_.end() || found->second.run.state == RunState::kExited) return success();
  Process& process = found->second;
  process.run.workers = workers;
  const auto surplus = process.nodes.lower_bound(workers);
  if (surplus != process.nodes.end()) {
    process.nodes.erase(surplus, process.nodes.end());
    process.computes_from_ms = clock_.now_ms() + kGatherMs;
  }
  place();
  return success();
}

Status GpuNodes::stop(const api::Trial& trial, std::int64_t run) {
  const auto found = processes_.find({trial.metadata.name, run});
  if (found == processes_.end() || found->second.run.state == RunState::kExited) return success();
  exit(found->second, api::Outcome::kStopped, "stopped");
  changed_.insert(trial.metadata.name);
  place();
  return success();
}

Status GpuNodes::remove(const api::Trial& trial, std::int64_t run) {
  processes_.erase({trial.metadata.name, run});
  return success();
}

Result<std::vector<Run>> GpuNodes::observe(const api::Trial& trial) {
  std::vector<Run> runs;
  for (const auto& [id, process] : processes_) {
    if (id.first != trial.metadata.name) continue;
    Run run = process.run;
    const auto placed = static_cast<std::int64_t>(process.nodes.size());
    run.unplaced_workers = run.state == RunState::kExited ? 0 : run.workers - placed;
    if (run.state == RunState::kRunning) run.running_workers = placed;
    runs.push_back(std::move(run));
  }
  return runs;
}

void GpuNodes::watch(std::function<void(const std::string&)> listener) {
  listener_ = std::move(listener);
}

bool GpuNodes::computes(const Process& process) const {
  const auto placed = static_cast<std::int64_t>(process.nodes.size());
  const std::int64_t needed = process.fixed ? process.run.workers : process.least;
  return process.run.state == RunState::kRunning && placed >= needed && process.nodes.count(0) > 0;
}

// Accounts for the time until `until_ms`, in which nothing changed.
void GpuNodes::spend(std::int64_t until_ms) {
  const auto seconds = [](std::int64_t from_ms, std::int64_t to_ms) {
    return static_cast<double>(std::max<std::int64_t>(0, to_ms - from_ms)) / 1000;
  };
  const double passed = seconds(spent_until_ms_, until_ms);
  for (const auto& [node, gpus] : nodes_) offered_ += passed * static_cast<double>(gpus);
  for (auto& [id, process] : processes_) {
    const auto workers = static_cast<std::int64_t>(process.nodes.size());
    held_ += passed * static_cast<double>(workers);
    if (!computes(process)) continue;
    const double worked = seconds(std::max(spent_until_ms_, process.computes_from_ms), until_ms);
    process.done += worked * speed_of(workers) / process.work;
    process.spent += worked * static_cast<double>(workers);
  }
  spent_until_ms_ = until_ms;
}

std::int64_t GpuNodes::free_on(std::int64_t node) const {
  const auto found = nodes_.find(node);
  std::int64_t left = found == nodes_.end() ? 0 : found->second;
  for (const auto& [id, process] : processes_) {
    left -= std::count_if(process.nodes.begin(), process.nodes.end(),
                          [node](const auto& rank) { return rank.second == node; });
  }
  return left;
}

std::optional<std::int64_t> GpuNodes::free_node() const {
  for (const auto& [node, gpus] : nodes_) {
    if (free_on(node) > 0) return node;
  }
  return std::nullopt;
}

std::int64_t GpuNodes::free_gpus() const {
  std::int64_t total = 0;
  for (const auto& [node, gpus] : nodes_) total += free_on(node);
  return total;
}

// Returns whether later processes must wait: a gang waits for all its places at once.
bool GpuNodes::place(Process& process) {
  const auto lacking = [&process] {
    return process.run.workers - static_cast<std::int64_t>(process.nodes.size());
  };
  if (lacking() <= 0 || process.run.state == RunState::kExited) return false;
  if (!process.gathered && free_gpus() < lacking()) return true;
  for (std::int64_t rank = 0; rank < process.run.workers; ++rank) {
    if (process.nodes.count(rank) > 0) continue;
    const std::optional<std::int64_t> node = free_node();
    if (!node) break;
    process.nodes[rank] = *node;
    process.computes_from_ms = clock_.now_ms() + kPlaceMs + kGatherMs;
  }
  if (lacking() == 0) {
    process.gathered = true;
    process.lacks_since_ms = 0;
    if (process.run.state == RunState::kPending) {
      process.run.state = RunState::kRunning;
      process.run.started_ms = clock_.now_ms();
    }
  }
  return false;
}

void GpuNodes::place() {
  std::vector<std::pair<std::int64_t, Id>> line;
  for (const auto& [id, process] : processes_) line.emplace_back(process.asked, id);
  std::sort(line.begin(), line.end());
  for (const auto& [asked, id] : line) {
    Process& process = processes_.at(id);
    const std::size_t before = process.nodes.size();
    if (place(process)) return;
    if (process.nodes.size() == before) continue;
    process.run.pod_uid = core::run_name(id.first, id.second);
    changed_.insert(id.first);
  }
}

void GpuNodes::lose_node(std::int64_t node) {
  for (auto& [id, process] : processes_) {
    const std::size_t lost =
        std::erase_if(process.nodes, [node](const auto& rank) { return rank.second == node; });
    if (lost == 0) continue;
    changed_.insert(id.first);
    process.computes_from_ms = clock_.now_ms() + kGatherMs;
    const bool from_checkpoint = process.fixed || process.nodes.count(0) == 0;
    if (!from_checkpoint) continue;
    process.done = 0;
    process.spent = 0;
    process.lacks_since_ms = clock_.now_ms();
  }
}

void GpuNodes::change_nodes() {
  for (; next_change_ < changes_.size(); ++next_change_) {
    const NodeChange& change = changes_[next_change_];
    if (change.at_ms > clock_.now_ms()) return;
    nodes_.erase(change.node);
    lose_node(change.node);
    if (change.gpus > 0) nodes_[change.node] = change.gpus;
  }
}

// Returns when the present step will be done if nothing changes; -1: never.
std::int64_t GpuNodes::step_ends_ms(const Process& process) const {
  if (!computes(process)) return -1;
  const auto workers = static_cast<std::int64_t>(process.nodes.size());
  const double left = std::max(0.0, 1 - process.done) * process.work / speed_of(workers);
  return std::max(spent_until_ms_, process.computes_from_ms) +
         static_cast<std::int64_t>(std::ceil(left * 1000));
}

void GpuNodes::take_steps() {
  for (auto& [id, process] : processes_) {
    if (!computes(process) || process.done < 1 - 1e-9) continue;
    useful_ += process.spent;
    process.done = 0;
    process.spent = 0;
    checkpoints_[id.first] = ++process.step;
    changed_.insert(id.first);
    api::Report report = process.run.report.value_or(api::Report{});
    report.step = process.step;
    report.metrics = {{process.metric, curve_(process.parameters, process.step)}};
    report.history.push_back({report.step, report.metrics});
    report.checkpoint = "step-" + std::to_string(process.step);
    report.checkpoint_step = process.step;
    report.at_ms = clock_.now_ms();
    report.final_result = process.step >= process.run.until_step;
    process.run.report = std::move(report);
    if (process.run.report->final_result) exit(process, api::Outcome::kSucceeded, "exit code 0");
  }
}

void GpuNodes::give_up_gangs() {
  for (auto& [id, process] : processes_) {
    const bool late = process.lacks_since_ms != 0 && process.fixed &&
                      clock_.now_ms() >= process.lacks_since_ms + kGangTimeoutMs;
    if (!late || process.run.state != RunState::kRunning) continue;
    ++disruptions_;
    changed_.insert(id.first);
    exit(process, api::Outcome::kDisrupted, "a worker was disrupted and finds no node");
  }
}

void GpuNodes::exit(Process& process, api::Outcome outcome, const std::string& reason) {
  process.run.state = RunState::kExited;
  process.run.outcome = outcome;
  process.run.reason = reason;
  process.run.ended_ms = clock_.now_ms();
  process.nodes.clear();
}

void GpuNodes::advance() {
  spend(clock_.now_ms());
  change_nodes();
  take_steps();
  give_up_gangs();
  place();
  for (const std::string& trial : std::exchange(changed_, {})) {
    if (listener_) listener_(trial);
  }
}

std::int64_t GpuNodes::next_ms() const {
  std::int64_t next = next_change_ < changes_.size() ? changes_[next_change_].at_ms : -1;
  const auto at = [&next](std::int64_t ms) {
    if (ms >= 0 && (next < 0 || ms < next)) next = ms;
  };
  for (const auto& [id, process] : processes_) {
    if (process.run.state == RunState::kExited) continue;
    at(step_ends_ms(process));
    if (process.fixed && process.lacks_since_ms != 0) at(process.lacks_since_ms + kGangTimeoutMs);
  }
  return next;
}

}  // namespace fettle::sim
