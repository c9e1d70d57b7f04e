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

#include "kube/client/client.h"
#include "kube/election/leader_election.h"

namespace fettle::kube {

struct LeaderOptions {
  LeaseTerms terms;
  std::uint64_t seed = 0;  // of the jitter
  // Called on the elector's thread; must return quickly; may be empty.
  std::function<void()> on_leading;
  std::function<void()> on_lost;  // after on_leading: stop work at once. Not called by stop().
  std::function<void(const std::string& holder)> on_holder;  // "" = none
  // Returns why a leader must not renew its lease: it does not work; "" = it does. May be empty.
  std::function<std::string()> why_not_renew;
};

class LeaderElector {
 public:
  LeaderElector(Client& client, LeaderOptions options);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void start();
  // Releases the lease, if this process leads. Stop all writing first. Takes at most the client's
  // deadline.
  void stop();

  // Whether this process leads and has renewed recently enough to write.
  bool may_write() const;
  // Returns false if `most` passed or the elector was stopped.
  bool wait_leading(std::chrono::milliseconds most);
  // Returns the leader, if known; "" = no process.
  std::string holder() const;
  // Returns the error of the last call to the API server; absent if it succeeded.
  std::optional<std::string> last_error() const;

 private:
  void run(const std::stop_token& stop);
  LeaseOutput advance(const LeaseInput& input);
  LeaseInput carry_out(const LeaseOutput& output, const std::stop_token& stop);
  Result<Json> remember(Result<Json> lease);  // returns `lease`; keeps its error for last_error()
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
