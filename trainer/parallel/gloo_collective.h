// Adds up over TCP with Gloo, for workers that train on CPUs: every worker is connected with every
// other, and sums go around in a ring, so each sends and receives twice its numbers, however many
// workers there are. The order in which a number is added up depends on the world size alone.
//
// Gloo knows only that a connection was cut or that time ran out; who is missing the membership
// finds out.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "trainer/collective.h"
#include "trainer/parallel/membership.h"

namespace fettle::trainer {

// All members call it. `membership` must outlive the collective, and is not used by others
// meanwhile; no call takes longer than about `timeout`. The process ignores SIGPIPE from then on:
// Gloo writes to connections that the other end may have closed. kInvalid: a build without Gloo.
Result<std::unique_ptr<Collective>> make_gloo_collective(Membership& membership,
                                                         std::chrono::milliseconds timeout);

}  // namespace fettle::trainer
