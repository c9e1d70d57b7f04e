// Operator: assembles client, informers, controllers and HTTP server, and starts and stops them in
// the right order.
//
// Start: listen for probes, wait for the lease, list and watch, run the Manager, which reconciles
// each namespace once it is listed. Stop: first the workers, then informers and events, and last
// the lease, when no more writes follow. A standby caches nothing: it lists when it takes over, so
// it sees everything its predecessor wrote.
//
// run() is called once, by one thread; stop() by any, also before run() and more than once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/http/http_server.h"
#include "base/result.h"
#include "core/control/clock.h"
#include "core/control/manager.h"
#include "kube/client/client.h"
#include "kube/election/leader_elector.h"
#include "kube/events/event_recorder.h"
#include "operator/fence.h"
#include "operator/informers.h"
#include "operator/instruments.h"
#include "operator/options.h"
#include "runtime/kubernetes/run/job_runs.h"
#include "runtime/kubernetes/store/kube_store.h"
#include "runtime/kubernetes/store/server_clock.h"

namespace fettle::op {

// The identity of this replica.
struct Identity {
  std::string name;  // unique: the pod's name and a random suffix
  std::string ns;    // the namespace it runs in
  std::uint64_t seed = 0;
};

class Operator {
 public:
  // The lease has its own transport, so that renewals wait for no other call. Both transports must
  // outlive the Operator.
  Operator(Options options, Identity identity, kube::HttpTransport& transport,
           kube::HttpTransport& lease_transport, Log& log);
  ~Operator();

  // Returns after stop(), or with an error: a port is in use, or the lease was lost.
  Status run();
  void stop();

  // The bound ports, for tests that ask for any free one (0).
  std::uint16_t metrics_port() const { return metrics_port_; }
  std::uint16_t health_port() const { return health_port_; }
  // The answers of the two ports.
  HttpAnswer answer_health(std::string_view path);
  HttpAnswer answer_metrics(std::string_view path);

 private:
  Status listen();
  // Returns false if it was stopped first.
  bool await_lease();
  // Logs the missing admission policies of the chart.
  void check_policies();
  Status work();
  void log_missing();
  void shut_down();

  bool may_write() const { return !options_.leader_elect || elector_.may_write(); }
  // Whether /readyz succeeds, and the text of its answer.
  struct Readiness {
    bool ready = false;
    std::string words;
  };
  Readiness readiness();
  std::string why_stuck() const;
  kube::ClientOptions client_options();
  kube::ClientOptions lease_client_options();
  InformersOptions informers_options();

  const Options options_;
  const Identity identity_;
  Log& log_;
  control::SystemClock own_clock_;
  kubernetes::ServerClock clock_{own_clock_};
  FencedTransport transport_;
  kube::Client client_;
  kube::Client lease_client_;
  kube::LeaderElector elector_;
  kube::EventRecorder recorder_;
  Informers informers_;
  kubernetes::KubeStore store_;
  kubernetes::JobRuns runs_;
  Instruments instruments_;
  control::Manager manager_;
  HttpServer http_;
  std::atomic<std::uint16_t> metrics_port_ = 0;
  std::atomic<std::uint16_t> health_port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> working_ = false;
};

}  // namespace fettle::op
