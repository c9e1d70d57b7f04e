// Adds gradients up between GPUs, by NCCL, for workers of which each has a GPU of its own.
//
// The workers tell one another which NCCL and which GPU they have before NCCL hears of it: it
// notices two ranks on one card only within one pod, and hangs otherwise. Numbers in host memory,
// of which there are a few, go by the ring. What GPUs do together does not come to an end where a
// worker hangs or is gone; a guard (collective_guard.h) gives it up then: soon where a member's
// connection closes or says so, else after a time-out. The next call learns of it, and the
// membership finds out who is missing. Run on the emulator, not yet on several GPUs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/cuda/communicator.h"
#include "trainer/collective.h"
#include "trainer/parallel/membership.h"

namespace fettle::trainer {

struct NcclSettings {
  // For one collective, from when those before it are done.
  std::chrono::milliseconds timeout{};
  // 16 MiB: a link between GPUs does a hundred times what a socket does, so a message that is worth
  // its latency is larger.
  std::int64_t least_message = std::int64_t{4} << 20;
};

// All members call it, after make_ring_collective, whose ring they hand over; `maker` is nullptr
// where a worker has no GPU. Returns the ring itself if any of them has none. Errors: kInvalid: two
// on one card, or different versions; kUnavailable: as every Collective.
Result<std::unique_ptr<Collective>> make_nccl_collective(Membership& membership,
                                                         std::unique_ptr<Collective> ring,
                                                         kernels::CommunicatorMaker* maker,
                                                         const NcclSettings& settings);

}  // namespace fettle::trainer
