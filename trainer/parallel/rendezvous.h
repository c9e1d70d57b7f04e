// Rendezvous: a worker's request to join a trial's workers, and the group that they form. Used by
// membership.h; one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/parallel/connection.h"
#include "trainer/parallel/termination.h"

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

// Limit on a meeting that begins now; unlimited if the meeting is. `grace`: time added to it.
Deadline end_of_meeting(const RendezvousRequest& request, std::chrono::milliseconds grace = {});
std::chrono::milliseconds meeting_time(const RendezvousRequest& request);

struct Member {
  std::int64_t rank = 0;
  std::int64_t name = 0;  // the rank with which it joined
  Connection connection;
};

// The members of an epoch of the membership.
struct Group {
  std::int64_t world_size = 1;
  std::vector<Member> members;  // at rank 0: all others, by rank; elsewhere: rank 0
  bool gathering = true;        // the first meeting is under way

  bool has(std::int64_t name) const;
  std::vector<std::int64_t> names() const;
  // Sends a frame to all. A member that has gone fails the next joint operation.
  void send(const std::string& frame);
  // Tells all that training ends for them.
  void end(const std::string& reason);
};

// Receives a frame, but only within this process's patience once it was asked to end.
Result<std::string> hear(Connection& from, std::size_t most, Deadline deadline,
                         LastWait& last_wait);

}  // namespace fettle::trainer
