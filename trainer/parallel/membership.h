// Membership: which workers take part in the training of a trial, and with which rank.
//
// Rank 0 listens where MASTER_ADDR and MASTER_PORT say, the others come to it and say who they are:
// of which trial, with which token, as which rank of how many. One that does not belong gets a
// sentence that says why, and rank 0 keeps waiting; a rank that is missing when the time is up is
// named to all. The connections stay open: over them the workers exchange what a collective
// needs to find its peers, and learn which one was lost when a collective failed.
//
// The members of one epoch are fixed. A new epoch has those that are left and, where workers may
// come later, those that have come; they are renumbered in the order of their ranks, so rank 0
// stays what it is. Without it no worker continues. A worker that reaches rank 0 but not its
// neighbours is left out after a few epochs (unreachable_pairs.h).
// The token keeps strays and mistakes out; the connections are not encrypted.
// One thread. Errors: kUnavailable where a worker is missing, kInvalid where one does not belong.
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

// Whom a worker wants to meet, and who it is.
struct RendezvousRequest {
  Endpoint master;
  std::string trial;     // of which Study, too
  std::int64_t run = 0;  // of this trial
  std::string token;     // the same for all its workers
  std::string data;      // digest of what it trains on
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  bool open = false;                                 // workers may also come later
  std::chrono::milliseconds timeout{};               // for each answer
  std::optional<std::chrono::milliseconds> meeting;  // for all to come; default: as the timeout
  // All have as long as they need to come: the runtime ends a meeting that does not come about.
  bool patient = false;
  std::function<bool()> should_stop;  // asked while it waits for the others; may be empty
  Termination termination;            // later on
  std::function<void(const std::string&)> log;
  // A meeting that takes longer than this says whom it waits for, and again when that changes.
  std::chrono::milliseconds quiet = std::chrono::minutes(1);
  // At rank 0: whom it waits for, "" once all have come. May be empty.
  std::function<void(const std::string&)> waits_for;
};

// What a worker knows of a collective that failed.
struct CollectiveFailure {
  std::string name;
  bool late = false;  // no worker was seen to go, one did not come in time
  // The rank that this worker could not reach, where that is why, and not that others had given up
  // before.
  std::optional<std::int64_t> unreachable = {};
  std::string mismatch = {};  // "" or which workers were in different calls
};

// How a worker goes into the next epoch of the membership.
struct NextEpoch {
  std::int64_t least = 1;  // fewer workers are too few
  bool leaves = false;     // this worker does not take part in it
  bool progress = true;    // the last one made a step, or ended as all had agreed; rank 0's counts
};

// What rank 0 makes up and all know: what NCCL calls a unique id.
inline constexpr std::size_t kSharedIdBytes = 128;

// What a member's connection tells, while a collective is under way, without taking it.
enum class Sign {
  kNothing,
  kGoneOn,   // it is done with the collective, and has something else to say
  kTrouble,  // it is gone, or the collective has failed for it
};
Sign sign_of(int connection);

class Membership {
 public:
  // Returns when all are there; with kUnavailable when it is to stop before.
  static Result<std::unique_ptr<Membership>> join(const RendezvousRequest& request);
  // As rank 0, where `listener` has been opened already.
  static Result<std::unique_ptr<Membership>> host(const RendezvousRequest& request,
                                                  Listener listener);

  std::int64_t world_size() const { return world_size_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t epoch() const { return epoch_; }
  const std::string& shared_id() const { return shared_id_; }
  // Where the others reach this worker.
  std::string local_host() const;

  const Termination& termination() const { return request_.termination; }

  // To be watched while a collective is under way: sign_of().
  std::vector<int> connections() const;

  // What each brings, in the order of ranks. All call it. After an error those that are left may
  // form_next_epoch().
  Result<std::vector<std::string>> all_gather(const std::string& mine);

  // A collective has failed here: agrees with those that are left on who is missing, and says it in
  // words. kUnavailable, or kConflict everywhere where workers were in different calls.
  Error explain_loss(const CollectiveFailure& failure);

  // At rank 0: whether a worker has come that the next epoch would have. Does not wait.
  bool somebody_waits();

  // After a failed collective, or at a step that all agree on: all that are left call it and make
  // the next epoch, but for those that leave. Errors: rank 0 was lost; too few are left; this
  // worker was left out; the workers are connected with rank 0 but cannot work together.
  Status form_next_epoch(const NextEpoch& next);

 private:
  struct Member {
    std::int64_t rank = 0;
    std::int64_t name = 0;  // the rank as which it came
    Connection connection;
  };

  // A connection that has not said yet who it is.
  struct Stranger {
    Connection connection;
    Deadline since;
  };
  // A worker that others could not reach; it would be as unreachable again.
  struct LeftOut {
    std::int64_t name = 0;
    std::string host;
    std::string reason;
  };
  struct Lost {
    std::int64_t rank = 0;
    bool silent = false;  // still there, as far as one can see
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

  // Of rank 0.
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
  // Hears one frame of each member, until `deadline`.
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

  // Of rank 0.
  std::optional<Listener> listener_;  // while workers may come
  std::vector<Stranger> strangers_;
  std::vector<Member> waiting_;    // for the next epoch
  std::vector<std::int64_t> met_;  // names of those that the epoch under way began with
  UnreachablePairs unreachable_;
  std::string mismatch_;    // as a member said it
  std::string waited_for_;  // what was said last
  std::vector<LeftOut> left_out_;
};

}  // namespace fettle::trainer
