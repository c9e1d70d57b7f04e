// LeaderElector: runs leader election (leader_election.h) on its own thread.
//
// It needs its own Client and transport, without rate limit and with a deadline well below the
// renew deadline: renewals must not queue behind other calls. Lost leadership is final: the program
// exits and is restarted. start() and stop() are called by one thread, the rest by any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kube/client.h"
#include "kube/leader_election.h"

namespace fettle::kube {

struct LeaderOptions {
  LeaseTerms terms;
  std::uint64_t seed = 0;  // of the jitter
  // From the elector's thread; must return quickly; may be empty.
  std::function<void()> on_leading;
  std::function<void()> on_lost;  // after on_leading: leave off at once. Not called by stop().
  std::function<void(const std::string& holder)> on_holder;  // "" = none
  // Why a leader must not renew its lease, for it does not work; "" = it does. May be empty.
  std::function<std::string()> why_not_renew;
};

class LeaderElector {
 public:
  LeaderElector(Client& client, LeaderOptions options);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void start();
  // Gives the lease back, if this one leads. Stop all writing first. At most the client's deadline.
  void stop();

  // Whether this one leads and has renewed recently enough to write.
  bool may_write() const;
  // False when `most` passed or the elector was stopped.
  bool wait_leading(std::chrono::milliseconds most);
  // Who leads, as far as is known; "" = no process.
  std::string holder() const;
  // What the last call to the API server failed with; nothing when it did not.
  std::optional<std::string> last_error() const;

 private:
  void run(const std::stop_token& stop);
  LeaseOutput advance(const LeaseInput& input);
  LeaseInput carry_out(const LeaseOutput& output, const std::stop_token& stop);
  Result<Json> remember(Result<Json> lease);  // returns `lease`; its error is for last_error()
  void release();
  static LeaseNow now();

  Client& client_;
  const LeaderOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  LeaseState state_;
  bool ended_ = false;
  std::optional<std::string> error_;
  std::jthread thread_;
};

}  // namespace fettle::kube
