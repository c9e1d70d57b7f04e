// Sums over TCP, for workers that train on CPUs: each is connected with the next and the last
// with the first, and pieces go around twice, once to be summed and once to be handed
// out. So each sends and receives twice its numbers, however many workers there are, and the order
// in which numbers are added depends on the world size alone.
//
// While it waits for a neighbour it watches the members' connections, too: whichever worker is
// lost, and wherever a collective has failed, all break it off at once; the membership finds out
// which one is missing.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "trainer/collective.h"
#include "trainer/parallel/membership.h"

namespace fettle::trainer {

// All members call it, and there are two at least. `membership` must outlive the collective, and is
// not used by others meanwhile. No call takes longer than about `timeout`; a neighbour's connection
// on which nothing is acknowledged for as long as `unacknowledged` is cut.
// Errors of its calls also: kConflict: a neighbour is in another call, so that the bytes of one
// would be added to those of the other.
Result<std::unique_ptr<Collective>> make_ring_collective(
    Membership& membership, std::chrono::milliseconds timeout,
    std::chrono::milliseconds unacknowledged = kUnacknowledgedTime);

}  // namespace fettle::trainer
