// FakeApiServer: the Kubernetes API in memory, behind HttpTransport, for tests.
//
// It keeps any resource: get, list (label and field selectors, pages), watch (bookmarks, 410),
// create (generateName, dry run), put, merge patch, server-side apply, delete (uid and
// resourceVersion preconditions, finalizers, foreground), status subresources, resourceVersion,
// generation, pods' logs, and garbage collection by ownerReferences on request. It knows no schemas
// (except through on_validation) and no controllers: Jobs make no pods; a test plays their parts
// through set() and its own writes. A write that changes nothing is no write, as on the real
// server, and each answer has a Date.
//
// Not modelled: fields with list types (apply owns whole lists), conversion, authentication.
// Thread-safe; calls and streams may come from any number of threads. Streams end when the server
// is destroyed or disconnect_watches() is called.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kube/client/http.h"
#include "kube/objects/resource.h"
#include "kube/testing/fake_log.h"
#include "kube/testing/fake_objects.h"

namespace fettle::kube {

struct FakeTarget;

// A failure of requests for which `matches` holds (empty = all), `times` times after `skip` of them
// passed, or at every `every`-th of them for ever.
struct Fault {
  enum class Kind {
    kRefused,      // never reaches the server: HttpFailure{maybe_done = false}
    kResetBefore,  // not carried out, but the client cannot know: HttpFailure{maybe_done = true}
    kResetAfter,   // carried out, no answer: HttpFailure{maybe_done = true}
    kDoubled,      // carried out twice; the second answer is seen (as with cpprestsdk)
    kAnswer,       // not carried out; `answer` is returned instead
    kTruncated,    // carried out; the body of the answer is cut in half
  };
  Kind kind = Kind::kResetBefore;
  std::function<bool(const HttpRequest&)> matches;
  int skip = 0;
  int times = 1;
  int every = 0;  // > 0: `skip` and `times` are ignored
  HttpResponse answer;
};

class FakeApiServer : public HttpTransport {
 public:
  FakeApiServer();
  ~FakeApiServer() override;

  HttpResult call(const HttpRequest& request, std::chrono::milliseconds deadline) override;
  HttpResult stream(const HttpRequest& request,
                    const std::function<bool(std::string_view line)>& on_line,
                    std::chrono::milliseconds idle, std::stop_token stop) override;

  // Direct access for the test: past admission and faults, but visible to watches. Returns the
  // object; null if it does not exist.
  Json get(const Resource& resource, const ObjectKey& key);
  std::vector<Json> list(const Resource& resource);
  // Creates or replaces the whole object, status included; returns it as stored.
  Json set(const Resource& resource, const Json& object);
  // Merges `patch` into the whole object, status included.
  Json merge(const Resource& resource, const ObjectKey& key, const Json& patch);
  void remove(const Resource& resource, const ObjectKey& key);
  // Deletes objects whose owner is gone or that wait for their dependents; returns their number.
  int collect_garbage();

  // Sets the Unix milliseconds for times that the server writes, instead of the machine's clock.
  // Call before use.
  void use_clock(std::function<std::int64_t()> now_ms);
  // Lets a test of the server or the client itself make calls without a row in kube/client/calls.h,
  // at which the destructor otherwise aborts.
  void allow_any_call() { any_call_ = true; }
  // Returns the resourceVersion of the newest change.
  std::int64_t version() const;

  // Called before every write (with the state to be); an error refuses it: kForbidden 403, others
  // 422. One hook; set before use.
  void on_admission(std::function<Status(const Admission&)> admit);
  // Called before that, for resources with a schema; the server itself has none. One hook; set
  // before use.
  void on_validation(Validate validate);

  void inject(Fault fault);
  void clear_faults();

  void send_bookmarks();
  // Forgets the history: watches from an older version get 410, lists with a continue token too.
  void compact();
  // Ends every watch; they may reconnect. With `in_stream_status`, an ERROR line comes first.
  void disconnect_watches(const Json& in_stream_status = {});
  // While cut, watches stay open without events; the changes follow afterwards.
  void cut_watches(bool cut);
  // Waits until `count` watches are open; false after `most`.
  bool wait_for_watches(int count, std::chrono::milliseconds most);

  // Appends to the log of a container ("" = the only one); `ended`: a stream that follows it ends.
  // `at_ns` is the time of the line, Unix nanoseconds; 0 = now.
  void append_log(const ObjectKey& pod, const std::string& container, const std::string& line,
                  std::int64_t at_ns = 0);
  void end_log(const ObjectKey& pod, const std::string& container);

  // Returns every request that reached the server, without its query: "POST /apis/batch/v1/jobs".
  std::vector<std::string> requests() const;
  // Counts requests other than GET.
  int writes() const;
  void forget_requests();

 private:
  struct Position;  // progress of a watch

  // These require mutex_.
  std::optional<Fault> next_fault(const HttpRequest& request);
  void record(const HttpRequest& request);
  HttpResult meet(const HttpRequest& request);
  HttpResponse answer(const HttpRequest& request, const FakeTarget& target);
  HttpResponse answer_list(const FakeTarget& target) const;
  HttpResponse answer_log(const FakeTarget& target);
  HttpResponse answer_write(const HttpRequest& request, const FakeTarget& target);
  std::optional<HttpResponse> refuse_watch(const FakeTarget& target) const;
  std::vector<std::string> news(const FakeTarget& target, Position& position) const;
  HttpResult follow_log(const FakeTarget& target,
                        const std::function<bool(std::string_view)>& on_line,
                        const std::stop_token& stop, std::unique_lock<std::mutex>& lock);
  HttpResult follow_watch(const FakeTarget& target,
                          const std::function<bool(std::string_view)>& on_line,
                          std::chrono::milliseconds idle, const std::stop_token& stop,
                          std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  FakeObjects objects_;
  std::vector<Fault> faults_;
  std::vector<std::string> requests_;
  std::set<std::string> calls_without_row_;
  std::atomic<bool> any_call_ = false;
  int writes_ = 0;
  std::map<std::string, FakeLog> logs_;  // "namespace/pod/container"
  int open_streams_ = 0;
  int open_watches_ = 0;
  int bookmarks_ = 0;       // sent so far
  int disconnections_ = 0;  // so far
  Json farewell_;           // the Status of the newest disconnection
  bool cut_ = false;
  std::function<std::int64_t()> now_ms_;  // empty = the machine's
  bool closed_ = false;
};

}  // namespace fettle::kube
