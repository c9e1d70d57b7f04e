// WorkQueue: the objects to reconcile next, with the semantics of client-go's workqueue.
//
// An item is queued, processing (a worker has it) or both: an item added while it is processed
// comes back exactly once when it is done. So no item is processed twice at the same time, and a
// burst of changes costs one more reconcile. The earliest of several delayed additions of an item
// counts; retries back off exponentially per item until forget().
//
// Items that changed come before items that a resync adds, so that a resync of a thousand trials
// does not delay the trial whose pod has ended. While both wait, one take in kLaterEvery goes to
// the resync.
//
// WorkQueue is pure and unsynchronised: time is handed in. BlockingQueue is the same behind a
// mutex, for any number of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/control/clock.h"
#include "core/control/store.h"

namespace fettle::control {

// One object to reconcile.
struct Item {
  Kind kind = Kind::kStudy;
  Key key;
  auto operator<=>(const Item&) const = default;
};

enum class Urgency { kNow, kLater };
// The items that a worker takes.
enum class Lane { kAll, kTrials };
inline constexpr int kLaterEvery = 8;

// The first retry of an item waits kMinRetryMs, each further one in a row twice as long as the one
// before, at most kMaxRetryMs.
inline constexpr std::int64_t kMinRetryMs = 5;
inline constexpr std::int64_t kMaxRetryMs = 60'000;

class WorkQueue {
 public:
  // Queues `item`, unless it is queued already; one that was queued for later can become urgent.
  void add(const Item& item, Urgency urgency = Urgency::kNow);
  // Queues `item` once it is `at_ms`. The earliest of several times for one item counts.
  void add_at(const Item& item, std::int64_t at_ms);
  // Queues `item` again after its back-off. Returns how many retries in a row this makes.
  int retry(const Item& item, std::int64_t now_ms);
  // Ends the item's row of retries.
  void forget(const Item& item);

  // The next item that is due, now processing; absent if none is. Pair with done().
  std::optional<Item> take(std::int64_t now_ms, Lane lane = Lane::kAll);
  // True if the item was added meanwhile and is queued again.
  bool done(const Item& item);

  // When take() will have something: 0 = now; absent = not before an item is added.
  std::optional<std::int64_t> next_ms(Lane lane = Lane::kAll) const;

  // Items that are due and not taken.
  std::size_t depth() const;

 private:
  // The items of one urgency, Studies and Trials apart; by ticket: in the order of additions.
  struct Queue {
    std::map<std::uint64_t, Item> studies;
    std::map<std::uint64_t, Item> trials;

    std::map<std::uint64_t, Item>& of(Kind kind) { return kind == Kind::kStudy ? studies : trials; }
    // The map that holds the lane's next item.
    std::map<std::uint64_t, Item>& first(Lane lane);
    std::size_t size(Lane lane) const {
      return trials.size() + (lane == Lane::kAll ? studies.size() : 0);
    }
  };
  struct Place {
    Urgency urgency = Urgency::kNow;
    std::uint64_t ticket = 0;  // 0 = not in a queue while the item is processing
  };
  void release_due(std::int64_t now_ms);
  Queue& queue_of(Urgency urgency) { return urgency == Urgency::kNow ? now_ : later_; }
  void enqueue(const Item& item, Place& place);

  Queue now_;
  Queue later_;
  std::uint64_t tickets_ = 0;
  std::map<Item, Place> dirty_;
  std::map<Lane, int> in_a_row_;  // takes of a lane from now_ while something waited in later_
  std::set<Item> processing_;
  std::set<std::pair<std::int64_t, Item>> waiting_;  // ordered by time
  std::map<Item, std::int64_t> waiting_at_;          // the same, by item
  std::map<Item, int> retries_;
};

// A WorkQueue for several threads. After shut_down() additions are dropped and wait() returns.
class BlockingQueue {
 public:
  explicit BlockingQueue(Clock& clock) : clock_(clock) {}

  void add(const Item& item, Urgency urgency = Urgency::kNow);
  void add_at(const Item& item, std::int64_t at_ms);
  void retry(const Item& item);
  void forget(const Item& item);
  std::optional<Item> take(Lane lane = Lane::kAll);
  void done(const Item& item);
  std::optional<std::int64_t> next_ms() const;
  std::size_t depth() const;

  // Calls of wake() so far. Read it before checking for a reason to stop, then wait() for more: so
  // no wake() is missed, by any number of threads.
  std::uint64_t wakes() const;
  // Blocks until an item of the lane is due, shut_down() is called, wakes() is no longer `seen`, or
  // `max_ms` have passed.
  void wait(std::int64_t max_ms, std::uint64_t seen, Lane lane = Lane::kAll);
  void wake();
  void shut_down();

 private:
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  WorkQueue queue_;
  std::uint64_t wakes_ = 0;
  bool closed_ = false;
};

}  // namespace fettle::control
