// Admission: rank 0's decisions on who becomes a member. Listens, reads the greetings of unknown
// peers, and refuses those that do not belong, with the reason.
//
// A worker that comes when its place is taken waits for the next epoch. Silent connections keep no
// worker out: any program that reaches the port can open many. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/parallel/connection.h"
#include "trainer/parallel/rendezvous.h"

namespace fettle::trainer {

class Admission {
 public:
  // `request` and `group` must outlive it.
  Admission(const RendezvousRequest& request, Group& group, Listener listener)
      : request_(request), group_(group), listener_(std::move(listener)) {}
  Admission(const Admission&) = delete;

  // Returns when all ranks have joined. Errors: a rank is missing at the deadline, which all
  // members learn; this worker should stop.
  Status gather();

  // Whether a worker waits to join the next epoch. Does not block.
  bool somebody_waits();
  // Makes members of the waiting workers, except where the one to replace is not known to have
  // gone.
  void admit_waiting();

  // Refuses the worker of this name from this host from now on.
  void leave_out(std::int64_t name, const std::string& host, const std::string& reason) {
    left_out_.push_back({name, host, reason});
  }

 private:
  // A connection that has not identified itself yet.
  struct UnknownPeer {
    Connection connection;
    Deadline since;
  };
  // An excluded worker that others could not reach; it would be unreachable again.
  struct LeftOut {
    std::int64_t name = 0;
    std::string host;
    std::string reason;
  };

  void read_greetings();
  void make_room();
  bool is_settled(UnknownPeer& peer);
  void admit(Member member);
  void admit_replacements();
  std::string reason_to_refuse(const Json& said, const std::string& host) const;
  void drop_gone(std::vector<Member>& members);
  std::string missing_ranks() const;
  void report_missing(Deadline since);
  Status give_up();

  const RendezvousRequest& request_;
  Group& group_;
  std::optional<Listener> listener_;  // open while workers may join
  std::vector<UnknownPeer> unknown_peers_;
  std::vector<Member> waiting_;  // for the next epoch
  std::vector<LeftOut> left_out_;
  std::string reported_;  // the missing ranks last reported
};

}  // namespace fettle::trainer
