// All-reduces gradients over NCCL; each worker has a GPU.
//
// The workers exchange their NCCL versions and GPUs before NCCL starts: it notices two ranks on one
// card only within one pod, and hangs otherwise. Host memory, which carries only a few numbers,
// uses the ring. Joint work of GPUs does not end if a worker hangs or is gone; a guard
// (collective_guard.h) then aborts it: soon if a member's connection closes or reports trouble,
// else after a time-out. The next call returns the error, and the membership finds out who is
// missing. Run on the emulator, not yet on several GPUs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/cuda/libraries/communicator.h"
#include "trainer/parallel/collective.h"
#include "trainer/parallel/membership.h"

namespace fettle::trainer {

struct NcclSettings {
  // For one collective, counted from the end of earlier collectives.
  std::chrono::milliseconds timeout{};
  // 16 MiB: a link between GPUs is about a hundred times as fast as a socket, so only a larger
  // message is worth its latency.
  std::int64_t least_message = std::int64_t{4} << 20;
};

// All members call it, after make_ring_collective, and hand over that ring; `maker` is nullptr on a
// worker without a GPU. Returns the ring itself if any worker has no GPU. Errors: kInvalid: two
// workers on one card, or different versions; kUnavailable: as for every Collective.
Result<std::unique_ptr<Collective>> make_nccl_collective(Membership& membership,
                                                         std::unique_ptr<Collective> ring,
                                                         kernels::CommunicatorMaker* maker,
                                                         const NcclSettings& settings);

}  // namespace fettle::trainer
