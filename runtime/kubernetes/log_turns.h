// LogTurns: which log is read next. Whoever waits longest, tenant by tenant.
//
// Namespaces take turns, within each its Studies, and within each the logs that are due: those of
// pods that have ended first, for a trial waits for them. So a Study of a thousand trials slows its
// own logs down, not those of others. All together there are at most `calls_per_second`, a second's
// worth of them at once. Logs that could not be read are at most half of those under way: a node
// that does not answer holds up its own pods.
// Times are handed in. Not synchronised; looks through all entries, which are few thousands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace fettle::kubernetes {

class LogTurns {
 public:
  LogTurns(double calls_per_second, std::size_t readers);

  struct Wish {
    std::int64_t due_ms = 0;
    bool ended = false;     // its pod
    bool troubled = false;  // it could not be read last time
  };
  // `id` wants to be read; while it is being read, this is for afterwards.
  void want(const std::string& id, const std::string& ns, const std::string& study,
            const Wish& wish);
  // Nobody wants it any more.
  void drop(const std::string& id);

  // Whose turn it is, from now on under way; nothing: nobody is due, or it is too early.
  std::optional<std::string> take(std::int64_t now_ms);
  // It has been read; it comes again if it is wanted again.
  void done(const std::string& id);
  // When take() should be asked again at the latest; absent: when something changes.
  std::optional<std::int64_t> next_ms() const;

 private:
  // When somebody was last served, in turns.
  using Served = std::shared_ptr<std::int64_t>;
  struct Entry {
    Served ns;
    Served study;
    std::optional<Wish> wish;
    bool under_way = false;
    bool troubled = false;  // as it was when it was taken
  };
  bool may_go(const Entry& entry) const;
  static Served find(std::map<std::string, std::weak_ptr<std::int64_t>>& all,
                     const std::string& name);

  const double ms_per_call_;
  const std::size_t most_troubled_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::weak_ptr<std::int64_t>> namespaces_;
  std::map<std::string, std::weak_ptr<std::int64_t>> studies_;
  std::int64_t turn_ = 0;
  std::size_t troubled_ = 0;  // under way
  double next_call_ms_ = 0;   // the next one is not before
};

}  // namespace fettle::kubernetes
