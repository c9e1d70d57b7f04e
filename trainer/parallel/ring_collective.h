// Sums over TCP, for workers that train on CPUs: each is connected with the next and the last with
// the first, and pieces go around twice, once to be summed and once to be distributed. So each
// worker sends and receives twice its numbers, whatever the world size, and the order of summation
// depends on the world size alone.
//
// While a worker waits for a neighbour it also watches the members' connections: when any worker is
// lost, or a collective has failed anywhere, all abort at once; the membership finds out who is
// missing.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "trainer/parallel/collective.h"
#include "trainer/parallel/membership.h"

namespace fettle::trainer {

// All members (at least two) call it. `membership` must outlive the collective, and is not used by
// other code meanwhile. No call takes longer than about `timeout`; a neighbour's connection on
// which nothing is acknowledged for `unacknowledged` is cut.
// Errors of its calls also: kConflict: a neighbour is in another call, whose bytes would be added
// to this one's.
Result<std::unique_ptr<Collective>> make_ring_collective(
    Membership& membership, std::chrono::milliseconds timeout,
    std::chrono::milliseconds unacknowledged = kUnacknowledgedTime);

}  // namespace fettle::trainer
