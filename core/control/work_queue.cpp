// Invariant: a dirty item that is not processing is in the queue of its urgency, exactly once, and
// no other item is in any.
#include "core/control/work_queue.h"

#include <algorithm>
#include <chrono>

namespace fettle::control {

// ---- WorkQueue ---------------------------------------------------------------------------------

std::map<std::uint64_t, Item>& WorkQueue::Queue::first(Lane lane) {
  if (lane == Lane::kTrials || studies.empty()) return trials;
  if (trials.empty()) return studies;
  return studies.begin()->first < trials.begin()->first ? studies : trials;
}

void WorkQueue::enqueue(const Item& item, Place& place) {
  place.ticket = ++tickets_;
  queue_of(place.urgency).of(item.kind).emplace(place.ticket, item);
}

void WorkQueue::add(const Item& item, Urgency urgency) {
  const auto [known, is_new] = dirty_.emplace(item, Place{urgency, 0});
  Place& place = known->second;
  const bool becomes_urgent = urgency == Urgency::kNow && place.urgency == Urgency::kLater;
  if (!is_new && !becomes_urgent) return;
  later_.of(item.kind).erase(
      place.ticket);  // it is there only if it becomes urgent; no item has ticket 0
  place.urgency = urgency;
  if (processing_.count(item) == 0) enqueue(item, place);
}

void WorkQueue::add_at(const Item& item, std::int64_t at_ms) {
  const auto [known, inserted] = waiting_at_.emplace(item, at_ms);
  if (!inserted) {
    if (known->second <= at_ms) return;
    waiting_.erase({known->second, item});
    known->second = at_ms;
  }
  waiting_.emplace(at_ms, item);
}

int WorkQueue::retry(const Item& item, std::int64_t now_ms) {
  const int row = ++retries_[item];
  std::int64_t wait = kMinRetryMs;
  for (int i = 1; i < row && wait < kMaxRetryMs; ++i) wait *= 2;
  add_at(item, now_ms + std::min(wait, kMaxRetryMs));
  return row;
}

void WorkQueue::forget(const Item& item) { retries_.erase(item); }

void WorkQueue::release_due(std::int64_t now_ms) {
  while (!waiting_.empty() && waiting_.begin()->first <= now_ms) {
    const Item item = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    waiting_at_.erase(item);
    add(item);
  }
}

std::optional<Item> WorkQueue::take(std::int64_t now_ms, Lane lane) {
  release_due(now_ms);
  // Takes from later_ if nothing is urgent, or in its turn: after kLaterEvery - 1 urgent items.
  int& in_a_row = in_a_row_[lane];
  const bool turn_of_later = now_.size(lane) == 0 || in_a_row + 1 >= kLaterEvery;
  const bool takes_later = turn_of_later && later_.size(lane) > 0;
  in_a_row = !takes_later && later_.size(lane) > 0 ? in_a_row + 1 : 0;
  std::map<std::uint64_t, Item>& queue = (takes_later ? later_ : now_).first(lane);
  if (queue.empty()) return std::nullopt;
  Item item = std::move(queue.begin()->second);
  queue.erase(queue.begin());
  dirty_.erase(item);
  processing_.insert(item);
  return item;
}

bool WorkQueue::done(const Item& item) {
  processing_.erase(item);
  const auto again = dirty_.find(item);
  if (again == dirty_.end()) return false;
  enqueue(item, again->second);
  return true;
}

// The earliest delayed item counts, whatever its kind: a worker that wakes for nothing waits on.
std::optional<std::int64_t> WorkQueue::next_ms(Lane lane) const {
  if (now_.size(lane) + later_.size(lane) > 0) return 0;
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

std::size_t WorkQueue::depth() const { return now_.size(Lane::kAll) + later_.size(Lane::kAll); }

// ---- BlockingQueue -----------------------------------------------------------------------------

// Wakes all threads, because any single thread may not take items of this kind.
void BlockingQueue::add(const Item& item, Urgency urgency) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  queue_.add(item, urgency);
  changed_.notify_all();
}

void BlockingQueue::add_at(const Item& item, std::int64_t at_ms) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  queue_.add_at(item, at_ms);
  changed_.notify_all();
}

void BlockingQueue::retry(const Item& item) {
  const std::int64_t now_ms = clock_.now_ms();
  const std::lock_guard lock(mutex_);
  queue_.retry(item, now_ms);
  changed_.notify_all();
}

void BlockingQueue::forget(const Item& item) {
  const std::lock_guard lock(mutex_);
  queue_.forget(item);
}

std::optional<Item> BlockingQueue::take(Lane lane) {
  const std::int64_t now_ms = clock_.now_ms();
  const std::lock_guard lock(mutex_);
  if (closed_) return std::nullopt;
  return queue_.take(now_ms, lane);
}

void BlockingQueue::done(const Item& item) {
  const std::lock_guard lock(mutex_);
  if (queue_.done(item)) changed_.notify_all();
}

std::optional<std::int64_t> BlockingQueue::next_ms() const {
  const std::lock_guard lock(mutex_);
  return queue_.next_ms();
}

std::size_t BlockingQueue::depth() const {
  const std::lock_guard lock(mutex_);
  return queue_.depth();
}

std::uint64_t BlockingQueue::wakes() const {
  const std::lock_guard lock(mutex_);
  return wakes_;
}

void BlockingQueue::wait(std::int64_t max_ms, std::uint64_t seen, Lane lane) {
  std::unique_lock lock(mutex_);
  const std::int64_t end_ms = clock_.now_ms() + max_ms;
  while (wakes_ == seen && !closed_) {
    const std::int64_t now_ms = clock_.now_ms();
    const std::int64_t until_ms = std::min(end_ms, queue_.next_ms(lane).value_or(end_ms));
    if (until_ms <= now_ms) break;
    changed_.wait_for(lock, std::chrono::milliseconds(until_ms - now_ms));
  }
}

void BlockingQueue::wake() {
  const std::lock_guard lock(mutex_);
  ++wakes_;
  changed_.notify_all();
}

void BlockingQueue::shut_down() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace fettle::control
