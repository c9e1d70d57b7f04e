// WorkerConduct: whether a worker keeps to the worker protocol (docs/worker-protocol.md), and the
// fault for which it must be killed.
//
// A frame that does not fit is an objection; many of them are a fault. Another fault is silence: it
// can never answer again, or leaves a run waiting although it has a free slot. Pure; not
// synchronised. Times are Unix milliseconds, handed in.
#pragma once

#include <cstdint>
#include <string>

namespace fettle::runtime {

class WorkerConduct {
 public:
  struct Signs {
    bool is_mute = false;            // it was ready, and has closed its output
    bool keeps_run_waiting = false;  // a run waits although it has a free slot
    bool is_lost = false;            // it has closed its assignments
    bool prepares_first = false;     // it has several slots: a run begins once it is prepared
  };

  void object(const std::string& what);
  // It has begun a run.
  void answered() { silent_since_ms_ = 0; }
  // Whether it must be killed now; true once.
  bool becomes_unfit(const Signs& signs, std::int64_t now_ms);

  // Why it must be killed: completes "its worker was killed, since ..."; "" = it need not be.
  const std::string& fault() const { return fault_; }
  // Whether its present runs share the fault. A run that another one waited behind does not.
  bool blames_its_runs() const { return blames_; }

 private:
  std::string fault_of(const Signs& signs, std::int64_t now_ms);

  std::int64_t objections_ = 0;
  std::string objection_;  // the last
  std::string fault_;
  bool blames_ = false;
  std::int64_t silent_since_ms_ = 0;  // it may not answer again; 0 = it does
};

}  // namespace fettle::runtime
