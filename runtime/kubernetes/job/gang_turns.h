// GangTurns: decides whose gang is opened next, and for how long a Study leaves its turns to
// others.
//
// Namespaces take turns, and the Studies of a namespace among themselves. A Study whose gangs do
// not gather, while gangs of others do, backs off before its next attempt, each time twice as long,
// at most kMaxBackoff timeouts: for as long as an incomplete gang holds nodes, others lack them. A
// Study that is alone, or that gathered a gang, does not back off.
//
// Only a cache: losing it in a restart costs one turn. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/kubernetes/job/gang.h"

namespace fettle::kubernetes {

class GangTurns {
 public:
  static constexpr std::int64_t kMaxBackoff = 16;

  GangTurn turn_of(const kube::Job& job, std::int64_t now_ms) const;
  // Notes a transition of the gang that was carried out; `held`: it had a node.
  void note(const kube::Job& job, GangState to, bool held, std::int64_t now_ms,
            std::int64_t timeout_ms);

 private:
  struct Record {
    std::int64_t turn = 0;
    std::int64_t failures = 0;     // gangs that were returned in a row
    std::int64_t backoff_ms = 0;   // after the last of them
    std::int64_t returned_ms = 0;  // when the last of them was returned
    std::int64_t gathered_ms = 0;  // the newest gang that gathered; 0 = none
    std::int64_t used_ms = 0;
  };
  bool others_gather(const std::string& domain, const std::string& study,
                     std::int64_t since_ms) const;
  void forget(std::int64_t now_ms);

  std::int64_t turn_ = 0;
  std::map<std::string, Record> namespaces_;
  // By domain, then by study_of_gang().
  std::map<std::string, std::map<std::string, Record>> studies_;
};

}  // namespace fettle::kubernetes
