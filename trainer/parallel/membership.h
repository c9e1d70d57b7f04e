// Membership: the workers that take part in the training of a trial, and their ranks.
//
// Rank 0 listens at MASTER_ADDR and MASTER_PORT; the others connect and identify themselves by
// trial, token, rank and world size. A worker that does not belong is refused with the reason, and
// rank 0 keeps waiting; if a rank is still missing at the deadline, all workers learn which. The
// connections stay open: over them the workers exchange the addresses of a collective's peers, and
// learn which worker was lost when a collective failed.
//
// The members of one epoch are fixed. A new epoch has the remaining members and, if workers may
// join later, the new ones; they are renumbered in the order of their ranks, so rank 0 stays rank
// 0. Without rank 0 no worker continues. A worker that reaches rank 0 but not its neighbours is
// excluded after a few epochs (unreachable_pairs.h).
// The token keeps out strays and mistakes; the connections are not encrypted.
// One thread. Errors: kUnavailable if a worker is missing, kInvalid if one does not belong.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/parallel/connection.h"
#include "trainer/parallel/termination.h"
#include "trainer/parallel/unreachable_pairs.h"

namespace fettle::trainer {

// A worker's identity, and the group that it wants to join.
struct RendezvousRequest {
  Endpoint master;
  std::string trial;     // with its Study
  std::int64_t run = 0;  // of this trial
  std::string token;     // the same for all workers of the trial
  std::string data;      // digest of the training data
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  bool open = false;                                 // workers may also join later
  std::chrono::milliseconds timeout{};               // for each answer
  std::optional<std::chrono::milliseconds> meeting;  // for all to join; default: `timeout`
  // Sets no limit on the meeting: the runtime ends a meeting that does not complete.
  bool patient = false;
  std::function<bool()> should_stop;  // asked while waiting for the others; may be empty
  Termination termination;            // applies after the meeting
  std::function<void(const std::string&)> log;
  // A longer meeting logs the missing ranks, and again whenever they change.
  std::chrono::milliseconds quiet = std::chrono::minutes(1);
  // At rank 0: receives the missing ranks, "" once all have joined. May be empty.
  std::function<void(const std::string&)> waits_for;
};

// A worker's observations of a failed collective.
struct CollectiveFailure {
  std::string name;
  bool late = false;  // no connection was seen to close; a worker did not come in time
  // The rank that this worker could not reach, if that caused the failure; absent if others had
  // given up before.
  std::optional<std::int64_t> unreachable = {};
  std::string mismatch = {};  // "", or the workers that were in different calls
};

// A worker's terms for the next epoch of the membership.
struct NextEpoch {
  std::int64_t least = 1;  // with fewer workers training ends
  bool leaves = false;     // this worker does not take part
  bool progress = true;  // the last epoch made a step, or ended as all had agreed; rank 0's counts
};

// Size of the shared id that rank 0 generates (NCCL's unique id).
inline constexpr std::size_t kSharedIdBytes = 128;

// State of a member's connection while a collective is under way, peeked without reading.
enum class Sign {
  kNothing,
  kGoneOn,   // it has finished the collective, and sent something else
  kTrouble,  // it has gone, or the collective failed for it
};
Sign sign_of(int connection);

class Membership {
 public:
  // Returns when all workers have joined; kUnavailable if this worker should stop before.
  static Result<std::unique_ptr<Membership>> join(const RendezvousRequest& request);
  // As rank 0, with an open `listener`.
  static Result<std::unique_ptr<Membership>> host(const RendezvousRequest& request,
                                                  Listener listener);

  std::int64_t world_size() const { return world_size_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t epoch() const { return epoch_; }
  const std::string& shared_id() const { return shared_id_; }
  // The address at which the others reach this worker.
  std::string local_host() const;

  const Termination& termination() const { return request_.termination; }

  // To be watched with sign_of() while a collective is under way.
  std::vector<int> connections() const;

  // Contributions of all workers, in the order of ranks. All call it. After an error the remaining
  // workers may call form_next_epoch().
  Result<std::vector<std::string>> all_gather(const std::string& mine);

  // Called after a collective failed here: agrees with the remaining workers on the missing ones,
  // and describes the loss. kUnavailable, or kConflict on all workers if they were in different
  // calls.
  Error explain_loss(const CollectiveFailure& failure);

  // At rank 0: whether a worker waits to join the next epoch. Does not block.
  bool somebody_waits();

  // Called by all remaining workers after a failed collective, or at a step that all agree on:
  // forms the next epoch, without workers that leave. Errors: rank 0 was lost; too few are left;
  // this worker was excluded; the workers reach rank 0 but cannot work together.
  Status form_next_epoch(const NextEpoch& next);

 private:
  struct Member {
    std::int64_t rank = 0;
    std::int64_t name = 0;  // the rank with which it joined
    Connection connection;
  };

  // A connection that has not identified itself yet.
  struct Stranger {
    Connection connection;
    Deadline since;
  };
  // An excluded worker that others could not reach; it would be unreachable again.
  struct LeftOut {
    std::int64_t name = 0;
    std::string host;
    std::string reason;
  };
  struct Lost {
    std::int64_t rank = 0;
    bool silent = false;  // its connection is still open
  };

  explicit Membership(const RendezvousRequest& request);
  Status knock();
  Result<Connection> reach_master() const;
  Status hear_welcome(Deadline deadline);
  Result<std::string> await_frame(Connection& from, Deadline deadline) const;
  Result<std::string> hear(Connection& from, std::size_t most, Deadline deadline);
  std::chrono::milliseconds meeting_time() const {
    return request_.meeting.value_or(request_.timeout);
  }
  void say_whom_it_waits_for(Deadline since);
  std::string missing_ranks() const;
  Deadline end_of_gathering(std::chrono::milliseconds grace) const;
  bool is_to_stop() const { return gathering_ && request_.should_stop && request_.should_stop(); }

  // Rank 0 only.
  Status gather_members();
  void look_at_strangers();
  bool is_settled(Stranger& stranger);
  void seat(Member member);
  void seat_replacements();
  bool is_seated(std::int64_t name) const;
  std::string reason_to_refuse(const Json& said, const std::string& host) const;
  void forget_those_that_left(std::vector<Member>& members);
  void count_those_that_stay();
  std::vector<std::int64_t> names_of_members() const;
  void take_report(std::int64_t reporter, std::int64_t unreachable);
  Status leave_out_unreachable();
  void leave_out(std::int64_t name, const std::string& reason);
  void make_room_for_strangers();
  Status give_up_waiting();
  void end_all(const std::string& reason);
  void welcome_all();
  // Receives one frame from each member, until `deadline`.
  std::vector<Lost> find_lost(Deadline deadline);
  std::string tell_lost(const std::vector<Lost>& lost, const std::string& mismatch = "");

  Error hear_lost(const Json& word);

  Result<std::vector<std::string>> gather_and_send(const std::string& mine);  // rank 0
  Result<std::vector<std::string>> send_and_hear(const std::string& mine);    // the others

  const RendezvousRequest request_;
  std::int64_t rank_;
  std::int64_t world_size_;
  std::int64_t epoch_ = 0;
  std::string shared_id_;
  std::vector<Member> members_;  // at rank 0: all others, by rank; elsewhere: rank 0
  bool gathering_ = true;
  LastWait last_wait_;

  // Rank 0 only.
  std::optional<Listener> listener_;  // open while workers may join
  std::vector<Stranger> strangers_;
  std::vector<Member> waiting_;    // for the next epoch
  std::vector<std::int64_t> met_;  // names of the members at the start of this epoch
  UnreachablePairs unreachable_;
  std::string mismatch_;    // as a member reported it
  std::string waited_for_;  // the missing ranks last reported
  std::vector<LeftOut> left_out_;
};

}  // namespace fettle::trainer
