// PlayedCluster: the rest of a cluster, played by a script once a second: Job controller,
// scheduler, kubelet, Kueue, garbage collector, and the programs in the pods. It talks to the API
// server like its own components; only the trainers use a Client, whose calls can fail.
//
// A program trains one step in kStepSeconds. It needs everything that a real one needs: its claims,
// its PodGroup, the Service at which workers meet, and all workers of its gang. Results are a
// function of parameters and step, and a new run continues from the checkpoint. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "api/trial/trial.h"
#include "kube/client/client.h"
#include "kube/testing/fake_api_server.h"
#include "tests/matrix/calls/virtual_time.h"

namespace fettle::matrix {

struct ClusterScript {
  bool prints = false;        // programs print metrics; otherwise they report into their Trial
  bool ends_unheard = false;  // a trainer delivers its final report only in its last words
  // Somebody deletes the pod of rank 1 of this Job once it has run for a while.
  std::string loses_worker_of = "";
};

class PlayedCluster {
 public:
  static constexpr std::int64_t kStepSeconds = 5;

  PlayedCluster(kube::FakeApiServer& server, VirtualTime& time, kube::Client& trainers,
                ClusterScript script);

  void tick();

  // Programs of the trial that have not ended.
  int pods_of(const std::string& trial) const;
  // Steps of the trial's program, reported or not.
  std::int64_t steps_of(const std::string& trial) const;

  static double loss_of(const Json& parameters, std::int64_t step);

 private:
  struct Program {
    std::string ns;
    std::string pod;
    std::string job;
    std::string trial;
    std::string container;
    std::int64_t rank = 0;
    std::int64_t until_step = 1;
    std::int64_t born_ms = 0;
    std::int64_t began_ms = 0;        // when its container began to run; 0 = not yet
    std::int64_t next_ms = 0;         // of its next step
    std::int64_t ends_ms = 0;         // when it ends after a signal; 0 = no signal
    std::int64_t tells_until_ms = 0;  // until when it tries to deliver its final report
    std::int64_t step = 0;
    bool read_earlier = false;
    bool undelivered = false;
    bool stop_heard = false;
    bool ended = false;
    api::Report report;
  };

  void play_job(const Json& job);
  void create_pod(const Json& job, std::int64_t rank);
  void doom(Program& program);
  void finish_job(const Json& job, bool good, const std::string& why);
  void play(Program& program);
  void start(Program& program, const Json& pod);
  void train(Program& program);
  void print_or_report(Program& program);
  bool deliver(Program& program);
  void exit(Program& program, int code);
  std::string obstacle(const Json& pod) const;
  bool can_train(const Program& program);
  Json now_text() const;

  kube::FakeApiServer& server_;
  VirtualTime& time_;
  kube::Client& trainers_;
  ClusterScript script_;
  std::map<std::string, Program> programs_;          // by the pod's uid
  std::map<std::string, std::int64_t> checkpoints_;  // by the trial's name
  std::map<std::string, std::int64_t> admitted_ms_;  // by the Job's uid, Kueue
  std::set<std::string> failed_jobs_;  // by name, after the deletion of one of their pods
  std::int64_t collected_version_ = -1;
};

}  // namespace fettle::matrix
