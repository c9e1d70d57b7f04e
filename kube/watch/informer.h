// Informer: a Cache (cache.h) kept up to date by list and watch.
//
// watcher.h has the protocol, a pure state machine; watch_loop.h drives it with one thread and one
// connection for each watched namespace. An object that cannot be read (edited by hand) is reported
// as an error, and its last readable version stays in the cache.
//
// An Informer is started and stopped by one thread. Any thread may use cache(), and the rest once
// start() has returned. Set the cache's index and listeners before start().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client/http.h"
#include "kube/objects/json_path.h"
#include "kube/watch/cache.h"
#include "kube/watch/watch_loop.h"

namespace fettle::kube {

struct InformerOptions {
  Resource resource;
  std::vector<std::string> namespaces;  // empty = all
  std::string label_selector;
  std::uint64_t seed = 0;  // of the jitter; different in every process
  BackoffRules backoff = kWatchBackoff;
  int page_size = kPageSize;  // fewer for large objects: a page is parsed as a whole
  // For metrics and the log; called on the informer's threads; may be empty.
  std::function<void(const CallMade&)> on_call;
  std::function<void(const std::string& message)> on_error;
};

template <class T>
class Informer {
 public:
  using Read = std::function<Result<T>(const Json&)>;

  // `transport` must outlive the informer.
  Informer(HttpTransport& transport, InformerOptions options, Read read);
  ~Informer() { stop(); }
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void start();
  // After it returns no listener is called; takes at most kListDeadline (watch_loop.h).
  void stop();

  // Waits until every list has arrived once; false if `most` passed or the informer was stopped.
  bool wait_synced(std::chrono::milliseconds most);

  Cache<T>& cache() { return cache_; }
  const Cache<T>& cache() const { return cache_; }
  // Returns the present error of a list or watch; absent if all go well.
  std::optional<std::string> last_error() const;
  // Returns why the cached objects of this namespace are stale: its list or watch has failed for at
  // least this long.
  std::optional<std::string> trouble(const std::string& ns, std::chrono::milliseconds least) const;

  // A namespace ("" = all) whose list has not arrived yet.
  struct Missing {
    std::string ns;
    std::string why;       // "" = it is under way
    bool refused = false;  // the API server has answered without a list
  };
  std::vector<Missing> missing() const;

 private:
  // Reads the objects of one watch loop and puts them into the cache.
  class Feed : public WatchSink {
   public:
    Feed(Informer& informer, std::string ns) : informer_(informer), ns_(std::move(ns)) {}
    void list_begins() override;
    void listed(const Json& object) override;
    void list_ends(const std::string& version) override;
    void changed(const Json& object) override;
    void gone(const Json& object) override;
    void advanced(const std::string& version) override;
    void error(const std::string& message) override { informer_.report_error(message); }
    const std::string& ns() const { return ns_; }

   private:
    Informer& informer_;
    const std::string ns_;
    std::uint64_t mark_ = 0;
    std::vector<T> objects_;
  };

  std::optional<T> read(const Json& object);
  void report_error(const std::string& message) const {
    if (options_.on_error) options_.on_error(message);
  }

  HttpTransport& transport_;
  const InformerOptions options_;
  const Read read_;
  Cache<T> cache_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::vector<std::unique_ptr<WatchLoop>> loops_;  // beside feeds_
};

}  // namespace fettle::kube

#include "kube/watch/informer.inl"
