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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/parallel/admission.h"
#include "trainer/parallel/connection.h"
#include "trainer/parallel/loss_reports.h"
#include "trainer/parallel/rendezvous.h"
#include "trainer/parallel/termination.h"

namespace fettle::trainer {

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

  std::int64_t world_size() const { return group_.world_size; }
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
  explicit Membership(const RendezvousRequest& request);
  Status knock();
  Status hear_welcome(Deadline deadline);
  Error hear_lost(const Json& word);

  // Rank 0 only.
  void hear_intents();
  Status leave_out_unreachable();
  void welcome_all();

  Result<std::vector<std::string>> gather_and_send(const std::string& mine);  // rank 0
  Result<std::vector<std::string>> send_and_hear(const std::string& mine);    // the others

  const RendezvousRequest request_;
  std::int64_t rank_;
  std::int64_t epoch_ = 0;
  std::string shared_id_;
  Group group_;
  LastWait last_wait_;

  // Rank 0 only.
  std::optional<Admission> admission_;
  LossReports losses_;
  std::vector<std::int64_t> met_;  // names of the members at the start of this epoch
};

}  // namespace fettle::trainer
