#include "runtime/local/run/run_table.h"

#include <utility>

namespace fettle::local {

void KnownRun::end(api::Outcome outcome, const std::string& reason) {
  run.state = core::RunState::kExited;
  run.outcome = outcome;
  run.reason = reason;
  request.reset();
}

void KnownRun::set_reason(const Shortage& shortage) {
  if (stable_reason == shortage.stable) return;
  stable_reason = shortage.stable;
  run.reason = shortage.text();
}

void KnownRun::clear_reason() {
  stable_reason.clear();
  run.reason.clear();
}

void RunTable::insert(const RunKey& key, const KnownRun& run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  runs_.try_emplace(key, run);
}

bool RunTable::contains(const RunKey& key) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return runs_.contains(key);
}

std::optional<KnownRun> RunTable::find(const RunKey& key) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = runs_.find(key);
  return found == runs_.end() ? std::nullopt : std::optional(found->second);
}

bool RunTable::update(const RunKey& key, const std::function<void(KnownRun&)>& change) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = runs_.find(key);
  if (found == runs_.end()) return false;
  change(found->second);
  return true;
}

void RunTable::erase(const RunKey& key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  runs_.erase(key);
}

std::vector<core::Run> RunTable::runs_of(const std::string& trial) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<core::Run> runs;
  const RunKey first{trial, 0};
  for (auto it = runs_.lower_bound(first); it != runs_.end() && it->first.first == trial; ++it) {
    runs.push_back(it->second.run);
  }
  return runs;
}

std::vector<RunKey> RunTable::end_all(const std::string& reason) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<RunKey> ended;
  for (auto& [key, known] : runs_) {
    if (known.has_ended()) continue;
    known.end(api::Outcome::kDisrupted, reason);
    ended.push_back(key);
  }
  return ended;
}

void RunTable::watch(std::function<void(const std::string& trial)> listener) {
  const std::lock_guard<std::mutex> guard(mutex_);
  listener_ = std::move(listener);
}

void RunTable::notify(const std::string& trial) const {
  std::function<void(const std::string&)> listener;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    listener = listener_;
  }
  if (listener) listener(trial);
}

}  // namespace fettle::local
