#include "kube/election/leader_elector.h"

#include <ctime>
#include <utility>

namespace fettle::kube {
namespace {

using Phase = LeaseState::Phase;

Result<Json> object_of(Result<Written> written) {
  if (!written.ok()) return written.error();
  return std::move(written).value().object;
}

}  // namespace

LeaderElector::LeaderElector(Client& client, LeaderOptions options)
    : client_(client), options_(std::move(options)) {
  const LeaseTimes& times = options_.terms.times;
  CHECK(times.lease > times.renew && times.renew * 5 > times.retry * 6,
        "lease > renew > 1.2 * retry, or two may lead at a time");
  CHECK(!options_.terms.identity.empty(), "a candidate has an identity");
  state_.random = Random(options_.seed);
}

LeaderElector::~LeaderElector() { stop(); }

void LeaderElector::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void LeaderElector::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  release();
}

bool LeaderElector::may_write() const {
  const std::lock_guard lock(mutex_);
  return kube::may_write(options_.terms, state_, now().steady);
}

bool LeaderElector::wait_leading(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return ended_ || state_.phase != Phase::kCandidate; });
  return state_.phase == Phase::kLeader;
}

std::string LeaderElector::holder() const {
  const std::lock_guard lock(mutex_);
  return holder_of(state_);
}

std::optional<std::string> LeaderElector::last_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

LeaseNow LeaderElector::now() {
  using namespace std::chrono;
  // Unlike steady_clock, it runs while the machine sleeps: others take the lease meanwhile.
  timespec awake{};
  CHECK(clock_gettime(CLOCK_BOOTTIME, &awake) == 0, "this kernel has no CLOCK_BOOTTIME");
  return {duration_cast<milliseconds>(seconds(awake.tv_sec) + nanoseconds(awake.tv_nsec)),
          duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

void LeaderElector::run(const std::stop_token& stop) {
  LeaseInput input = LeaseDue{};
  while (true) {
    // Also takes an answer that came after stop(): release() must know which record it replaces.
    const LeaseOutput output = advance(input);
    if (stop.stop_requested() || std::holds_alternative<LeaseOver>(output)) break;
    input = carry_out(output, stop);
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// Makes one step, and tells the listeners about changes.
LeaseOutput LeaderElector::advance(const LeaseInput& input) {
  std::unique_lock lock(mutex_);
  const Phase before = state_.phase;
  const std::string holder_before = holder_of(state_);
  LeaseStep done = step(options_.terms, std::move(state_), input, now());
  state_ = std::move(done.state);
  const Phase after = state_.phase;
  const std::string holder = holder_of(state_);
  changed_.notify_all();
  // The callbacks may use may_write() and holder(), which lock.
  lock.unlock();
  if (holder != holder_before && options_.on_holder) options_.on_holder(holder);
  if (after != before) {
    if (after == Phase::kLeader && options_.on_leading) options_.on_leading();
    if (after == Phase::kLost && options_.on_lost) options_.on_lost();
  }
  return std::move(done.output);
}

LeaseInput LeaderElector::carry_out(const LeaseOutput& output, const std::stop_token& stop) {
  const ObjectKey& key = options_.terms.key;
  if (std::holds_alternative<ReadLease>(output)) {
    return LeaseRead{remember(client_.get(kLeases, key))};
  }
  if (const auto* create = std::get_if<CreateLease>(&output)) {
    return LeaseWritten{remember(object_of(client_.create(kLeases, key.ns, create->lease)))};
  }
  if (const auto* update = std::get_if<UpdateLease>(&output)) {
    const std::string stuck = options_.why_not_renew ? options_.why_not_renew() : "";
    // The state machine sees a failed write: it loses the lease at the renew deadline.
    if (!stuck.empty()) return LeaseWritten{remember(Error{ErrorCode::kUnavailable, stuck})};
    return LeaseWritten{
        remember(object_of(client_.update(kLeases, key, /*subresource=*/"", update->lease)))};
  }
  // A wait, because run() handles LeaseOver. Only a stop ends it early.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, std::get<WaitForLease>(output).time, [] { return false; });
  return LeaseDue{};
}

// Keeps the error for health. A missing lease and a lost race are no errors.
Result<Json> LeaderElector::remember(Result<Json> lease) {
  const std::lock_guard lock(mutex_);
  const bool failed = !lease.ok() && (lease.error().code == ErrorCode::kUnavailable ||
                                      lease.error().code == ErrorCode::kForbidden ||
                                      lease.error().code == ErrorCode::kInvalid);
  error_ = failed ? std::optional(lease.error().message) : std::nullopt;
  return lease;
}

void LeaderElector::release() {
  Json lease;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(state_.phase, Phase::kReleased) != Phase::kLeader) return;
    lease = released_lease(state_, now());
  }
  // If this fails, the lease expires by itself.
  (void)client_.update(kLeases, options_.terms.key, "", lease);
}

}  // namespace fettle::kube
