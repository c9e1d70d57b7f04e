// LossReports: rank 0's view of a failed collective: who is lost, who could not reach whom, and who
// is excluded for it. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/parallel/rendezvous.h"
#include "trainer/parallel/unreachable_pairs.h"

namespace fettle::trainer {

// A worker's observations of a failed collective.
struct CollectiveFailure {
  std::string name;
  bool late = false;  // no connection was seen to close; a worker did not come in time
  // The rank that this worker could not reach, if that caused the failure; absent if others had
  // given up before.
  std::optional<std::int64_t> unreachable = {};
  std::string mismatch = {};  // "", or the workers that were in different calls
};

class LossReports {
 public:
  struct Lost {
    std::int64_t rank = 0;
    bool silent = false;  // its connection is still open
  };

  // All must outlive it.
  LossReports(const RendezvousRequest& request, Group& group, LastWait& last_wait)
      : request_(request), group_(group), last_wait_(last_wait) {}
  LossReports(const LossReports&) = delete;

  // Hears from all members after a collective failed here, and sends them the verdict, which it
  // returns. kUnavailable, or kConflict if workers were in different calls.
  Error collect(const CollectiveFailure& failure);

  // `unreachable`: a rank of this epoch; negative: no report.
  void take(std::int64_t reporter, std::int64_t unreachable);

  // Removes lost members, sends the verdict to the remaining ones, and returns it. `mismatch`: the
  // reason, if no single member is to blame.
  std::string tell(const std::vector<Lost>& lost, const std::string& mismatch = "");

  // Ends an epoch. `progress`: as UnreachablePairs.
  void end_epoch(bool progress) { unreachable_.end_epoch(progress); }
  // The worker to exclude, because it was not reached for too long; nullopt: no worker. Errors: the
  // epochs fail, but no worker was reported, so none can be excluded.
  struct Excluded {
    std::int64_t name = 0;
    std::string reason;
  };
  Result<std::optional<Excluded>> excluded();

 private:
  std::vector<Lost> find_lost(Deadline deadline);

  const RendezvousRequest& request_;
  Group& group_;
  LastWait& last_wait_;
  UnreachablePairs unreachable_;
  std::string mismatch_;  // as a member reported it
};

}  // namespace fettle::trainer
