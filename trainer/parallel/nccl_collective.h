// Adds gradients up between GPUs, by NCCL, for workers of which each has a GPU of its own.
//
// The workers tell one another which NCCL and which GPU they have before NCCL hears of it: it
// notices two ranks on one card only within one pod, and hangs otherwise. Numbers in host memory,
// of which there are a few, go by the ring. A sum that does not come to an end, because a worker
// hangs or is gone, is given up: at once where a member's connection closes or says so, else by a
// watchdog after `timeout`; the membership then finds out who is missing. Run with a communicator
// made for tests, not yet on several GPUs.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "kernels/cuda/communicator.h"
#include "trainer/collective.h"
#include "trainer/parallel/membership.h"

namespace fettle::trainer {

// All members call it, after make_ring_collective, whose ring they hand over; `maker` is nullptr
// where a worker has no GPU. Returns the ring itself if any of them has none. Errors: kInvalid: two
// on one card, or different versions; kUnavailable: as every Collective.
Result<std::unique_ptr<Collective>> make_nccl_collective(Membership& membership,
                                                         std::unique_ptr<Collective> ring,
                                                         kernels::CommunicatorMaker* maker,
                                                         std::chrono::milliseconds timeout);

}  // namespace fettle::trainer
