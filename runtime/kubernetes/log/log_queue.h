// LogQueue: a fair queue that decides which log is read next.
//
// Scheduling is round-robin over namespaces, then over the Studies of a namespace. Within a Study
// the logs of ended pods come first, because their trials wait for them, then the log due longest.
// So a Study of a thousand trials delays its own logs and no others. A token bucket limits all
// reads to `calls_per_second`, with bursts of at most one second's worth. Logs that failed last
// time take at most half of the readers, so a node that does not answer delays only its own pods.
// The caller passes the time. Not synchronised. take() is linear in the entries, a few thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace fettle::kubernetes {

class LogQueue {
 public:
  LogQueue(double calls_per_second, std::size_t readers);

  struct Request {
    std::int64_t due_ms = 0;
    bool ended = false;    // the pod has ended
    bool failing = false;  // the last read failed
  };
  // Schedules a read of `id`, replacing a scheduled read. During a read: schedules the next one.
  void enqueue(const std::string& id, const std::string& ns, const std::string& study,
               const Request& request);
  // Cancels the scheduled read.
  void remove(const std::string& id);

  // Starts the next read and returns its id; absent if none is due or the rate limit is reached.
  std::optional<std::string> take(std::int64_t now_ms);
  // Ends the read of `id`.
  void done(const std::string& id);
  // When take() can next succeed; absent while nothing is scheduled.
  std::optional<std::int64_t> next_ms() const;

 private:
  // The value of `turn_` when a namespace or a Study was last served.
  using Served = std::shared_ptr<std::int64_t>;
  struct Entry {
    Served ns;
    Served study;
    std::optional<Request> request;
    bool in_flight = false;
    bool failing = false;  // as of take()
  };
  bool is_eligible(const Entry& entry) const;
  static Served find(std::map<std::string, std::weak_ptr<std::int64_t>>& all,
                     const std::string& name);

  const double ms_per_call_;
  const std::size_t max_failing_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::weak_ptr<std::int64_t>> namespaces_;
  std::map<std::string, std::weak_ptr<std::int64_t>> studies_;
  std::int64_t turn_ = 0;
  std::size_t failing_ = 0;  // reads in flight of logs that failed last time
  double next_call_ms_ = 0;  // earliest time of the next read
};

}  // namespace fettle::kubernetes
