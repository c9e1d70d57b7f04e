#include "trainer/parallel/collective_guard.h"

#include <algorithm>
#include <utility>

#include "trainer/parallel/membership.h"

namespace fettle::trainer {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(1);
// A finished member may leave before its neighbours' GPUs have received all it sent.
constexpr auto kShortWhile = std::chrono::milliseconds(200);

}  // namespace

CollectiveGuard::CollectiveGuard(kernels::Communicator& communicator, std::vector<int> connections,
                                 std::chrono::milliseconds limit, Termination termination)
    : communicator_(communicator),
      connections_(std::move(connections)),
      limit_(limit),
      last_wait_(std::move(termination)),
      thread_([this] { run(); }) {}

CollectiveGuard::~CollectiveGuard() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveGuard::began(std::string name) {
  const std::scoped_lock lock(mutex_);
  if (under_way_.empty()) oldest_since_ = Clock::now();
  under_way_.push_back(std::move(name));
  changed_.notify_all();
}

void CollectiveGuard::ended() {
  const std::scoped_lock lock(mutex_);
  under_way_.clear();
  trouble_since_.reset();
}

std::optional<CollectiveGuard::Verdict> CollectiveGuard::verdict() {
  const std::scoped_lock lock(mutex_);
  return verdict_;
}

void CollectiveGuard::run() {
  std::unique_lock lock(mutex_);
  while (!ends_ && !verdict_) {
    if (under_way_.empty()) {
      changed_.wait(lock, [this] { return ends_ || !under_way_.empty(); });
      continue;
    }
    count_done();
    verdict_ = judge();
    if (!verdict_) changed_.wait_for(lock, kBetweenLooks, [this] { return ends_; });
  }
  if (!verdict_) return;
  lock.unlock();
  communicator_.abort();  // after verdict_ is set: a call that fails by the abort reads it
}

// Work is done in the order in which it began.
void CollectiveGuard::count_done() {
  const std::int64_t done = communicator_.done();
  if (done == done_) return;
  const auto newly = std::min(done - done_, std::ssize(under_way_));
  under_way_.erase(under_way_.begin(), under_way_.begin() + newly);
  done_ = done;
  oldest_since_ = Clock::now();
  trouble_since_.reset();
}

// Judges the oldest unfinished work. A lost member alone is no verdict: its part may have arrived,
// so the work gets a short while to finish.
std::optional<CollectiveGuard::Verdict> CollectiveGuard::judge() {
  if (under_way_.empty()) return {};
  const std::string& oldest = under_way_.front();
  const Clock::time_point now = Clock::now();
  if (std::string words = communicator_.trouble(); !words.empty()) {
    return Verdict{oldest, /*late=*/false, std::move(words)};
  }
  if (!trouble_since_ && somebody_is_lost()) trouble_since_ = now;
  if (trouble_since_ && now - *trouble_since_ > kShortWhile) {
    return Verdict{oldest, /*late=*/false, ""};
  }
  // limit() brings the deadline forward once this process was asked to end.
  if (now > last_wait_.limit(oldest_since_ + limit_)) return Verdict{oldest, /*late=*/true, ""};
  return {};
}

bool CollectiveGuard::somebody_is_lost() {
  return std::ranges::any_of(connections_,
                             [](int connection) { return sign_of(connection) == Sign::kTrouble; });
}

}  // namespace fettle::trainer
