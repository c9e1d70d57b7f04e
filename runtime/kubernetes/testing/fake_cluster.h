// A cluster for tests: an API server in memory, a hand-moved kubelet and Job controller, and an
// operator that can be killed at any write. One thread, but for the operator's own.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "core/control/clock.h"
#include "core/control/manager.h"
#include "kube/client/client.h"
#include "kube/testing/fake_api_server.h"
#include "kube/watch/informer.h"
#include "runtime/kubernetes/run/job_runs.h"
#include "runtime/kubernetes/store/kube_store.h"

namespace fettle::kubernetes {

// Real time, many times faster.
class FastClock : public control::Clock {
 public:
  std::int64_t now_ms() override;

 private:
  control::SystemClock real_;
  const std::int64_t began_ms_ = real_.now_ms();
};

// The connection between an operator and the API server, which can cut the operator off at the n-th
// write.
class MortalTransport : public kube::HttpTransport {
 public:
  explicit MortalTransport(kube::HttpTransport& server) : server_(server) {}

  // Dies at write number `n` (from 0): after it, or before it.
  void die_at_write(int n, bool after);
  bool is_dead() const { return dead_; }

  kube::HttpResult call(const kube::HttpRequest& request,
                        std::chrono::milliseconds deadline) override;
  kube::HttpResult stream(const kube::HttpRequest& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          std::chrono::milliseconds idle, std::stop_token stop) override;

 private:
  kube::HttpTransport& server_;
  std::atomic<bool> dead_ = false;
  std::atomic<int> writes_ = 0;
  int last_ = -1;
  bool after_ = false;
};

// One life of the operator.
class TestOperator {
 public:
  TestOperator(kube::HttpTransport& server, control::Clock& clock);
  ~TestOperator();

  MortalTransport& transport() { return transport_; }
  JobRuns& runs() { return runs_; }
  KubeStore& store() { return store_; }
  // Reconciles one object; false if none is due.
  bool step();
  const std::vector<kube::Occurrence>& events() const { return events_; }
  bool has_event(const std::string& reason, const std::string& words) const;

 private:
  MortalTransport transport_;
  kube::Client client_;
  std::vector<kube::Occurrence> events_;
  kube::Informer<StudyEntry> studies_;
  kube::Informer<TrialEntry> trials_;
  kube::Informer<kube::Job> jobs_;
  kube::Informer<kube::Pod> pods_;
  KubeStore store_;
  JobRuns runs_;
  control::Observer observer_;
  control::Manager manager_;
};

// How the pods of a run fare.
struct PodScript {
  int exit_code = 0;
  double value = 0.5;            // of the objective
  bool reports = true;           // as the built-in trainer does, into the Trial
  bool last_words = false;       // in the termination message
  std::vector<std::string> log;  // printed
  bool stays = false;            // runs for ever
  Json waits;                    // the status of a pod that never runs; null = it runs
};

class FakeCluster {
 public:
  static constexpr const char* kFirstUid = "00000000-0000-0000-0000-00000000cafe";

  FakeCluster();

  kube::FakeApiServer server;
  FastClock clock;
  std::unique_ptr<TestOperator> manager;  // null while it is dead
  std::function<PodScript(const std::string& job)> script = [](const std::string&) {
    return PodScript();
  };
  std::map<std::string, int> created;  // by "resource/name"; counts real creations

  // From YAML, in the namespace "team"; `uid` tells two Studies of a name apart.
  void apply(const std::string& yaml, const std::string& uid = kFirstUid);
  void start_operator();
  void kill_operator() { manager.reset(); }
  // Lets time pass until `done`; false when that takes longer than 20 s.
  bool run_until(const std::function<bool()>& done);
  bool run_until_ended() {
    return run_until([this] { return is_true("Succeeded") || is_true("Failed"); });
  }
  // Waits without the controllers: only informers bring changes.
  static bool eventually(const std::function<bool()>& holds);
  // Lets everything happen for `ms` of real time.
  void run_for(int ms);
  // Runs until nothing has been written for a while. Returns whether that state was reached.
  bool come_to_rest();

  Json study() { return server.get(kube::kStudies, {"team", "digits"}); }
  Json trial(int index);
  bool is_true(const std::string& condition);
  std::string message_of(const std::string& condition);
  std::size_t count(const kube::Resource& resource) { return server.list(resource).size(); }
  bool collects_garbage = true;
  Status admit = success();  // the answer to creations that `refuses` selects
  std::function<bool(const kube::Admission&)> refuses;

 private:
  bool is_dry_run(const kube::Admission& write);
  void tick();
  void move_job(const Json& job);
  void end_late_job(const Json& job);
  void begin_pod(const Json& job, const PodScript& pod);
  void end_pod(const Json& job, const Json& pod, const PodScript& script);

  std::set<std::string> studies_;  // uids
};

// A Study of `trials` trials, two at a time, of the user's own image.
std::string template_study(int trials);
// The same with the built-in trainer.
std::string trainer_study(int trials);

}  // namespace fettle::kubernetes
