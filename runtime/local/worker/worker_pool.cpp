#include "runtime/local/worker/worker_pool.h"

#include <algorithm>

#include "core/names.h"

namespace fettle::local {

bool WorkerPool::fits(const Worker& worker, const WorkerShape& shape) {
  WorkerShape own = worker.shape;
  if (worker.takes_arguments) own.arguments = shape.arguments;
  return own == shape;
}

// Whether the worker should get no further run.
bool WorkerPool::is_worn(const Worker& worker) {
  const std::int64_t most_memory = worker.early_memory + worker.early_memory / 4 + kMostGrowth;
  return worker.may_be_damaged || worker.trained >= kMostTrained ||
         (worker.early_memory > 0 && worker.memory > most_memory);
}

std::optional<std::int64_t> WorkerPool::place(const RunKey& run, const WorkerShape& shape) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Worker* best = nullptr;
  std::int64_t number = 0;
  for (auto& [each, worker] : workers_) {
    const bool has_slot = std::ssize(worker.runs) < worker.shape.slots;
    if (worker.ends || !has_slot || is_worn(worker) || !fits(worker, shape)) continue;
    if (wants_room_ && worker.runs.empty()) continue;
    if (best != nullptr && best->runs.size() <= worker.runs.size()) continue;
    best = &worker;
    number = each;
  }
  if (best == nullptr) return std::nullopt;
  best->runs.insert(run);
  return number;
}

std::int64_t WorkerPool::add(const RunKey& first, const WorkerShape& shape, std::int64_t now_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Worker& worker = workers_[++last_];
  worker.shape = shape;
  worker.runs.insert(first);
  worker.started_ms = now_ms;
  return last_;
}

void WorkerPool::set_ready(std::int64_t worker, bool takes_arguments) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.takes_arguments = takes_arguments;
}

std::optional<std::int64_t> WorkerPool::release(const RunKey& run, bool failed, std::int64_t memory,
                                                std::int64_t now_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (auto& [number, worker] : workers_) {
    if (worker.runs.erase(run) == 0) continue;
    ++worker.trained;
    worker.may_be_damaged = worker.may_be_damaged || failed;
    if (memory > 0) worker.memory = memory;
    if (worker.trained == 3) worker.early_memory = worker.memory;
    worker.idle_since_ms = now_ms;
    return number;
  }
  return std::nullopt;
}

void WorkerPool::erase(std::int64_t worker) {
  const std::lock_guard<std::mutex> guard(mutex_);
  workers_.erase(worker);
}

std::optional<std::int64_t> WorkerPool::worker_of(const RunKey& run) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& [number, worker] : workers_) {
    if (worker.runs.contains(run)) return number;
  }
  return std::nullopt;
}

bool WorkerPool::has_idle() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return std::ranges::any_of(
      workers_, [](const auto& entry) { return entry.second.runs.empty() && !entry.second.ends; });
}

std::vector<std::int64_t> WorkerPool::take_spent(bool others_wait, std::int64_t now_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<std::int64_t> spent;
  for (auto& [number, worker] : workers_) {
    if (worker.ends || !worker.runs.empty()) continue;
    const bool gives_way = others_wait && now_ms >= worker.started_ms + kLeastAgeMs;
    const bool was_idle = now_ms >= worker.idle_since_ms + kMostIdleMs;
    if (!wants_room_ && !gives_way && !was_idle && !is_worn(worker)) continue;
    wants_room_ = false;
    worker.ends = true;
    spent.push_back(number);
  }
  return spent;
}

std::optional<std::int64_t> WorkerPool::take_idle() {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (auto& [number, worker] : workers_) {
    if (worker.ends || !worker.runs.empty()) continue;
    worker.ends = true;
    return number;
  }
  return std::nullopt;
}

std::optional<std::int64_t> WorkerPool::make_room() {
  const std::optional<std::int64_t> idle = take_idle();
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto ends = [](const auto& entry) { return entry.second.ends; };
  wants_room_ = !workers_.empty() && std::ranges::none_of(workers_, ends);
  return idle;
}

std::vector<WorkerView> WorkerPool::views() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<WorkerView> views;
  for (const auto& [number, worker] : workers_) {
    WorkerView view{number, worker.trained, worker.memory, {}};
    for (const auto& [trial, run] : worker.runs) view.runs.push_back(core::run_name(trial, run));
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace fettle::local
