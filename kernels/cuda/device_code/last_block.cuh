// Sums of a whole grid in one launch: every block writes its part, and the last block to finish
// sums all parts, in an order that does not depend on which block it is. So the bits equal the bits
// of a second launch that sums, and its time is saved: a launch takes longer than most kernels of a
// small network. (CUDA's sample threadFenceReduction.)
//
// A counter in device memory determines the last block. atomicInc resets it to zero when the last
// block has counted, so the next launch finds it as this one did, even if a recorded graph launches
// without a host that could clear it. It is Device::counters: as with the scratch memory that holds
// the parts, all kernels that use it are enqueued on the device's one stream.
//
// Memory order. After the barrier, thread 0 of a block sees the writes of the block's threads; its
// fence comes before it counts, so a thread that sees the count sees the writes (fences are
// cumulative). The last block's fence and barrier do the same the other way round. __ldcg then
// reads from the second-level cache, which all multiprocessors share, so a stale line in the
// first-level cache or a register does not matter. Parts must never be read through __ldg or a
// __restrict__ pointer: these read as if nothing had been written.
//
// The emulator, in its orders of blocks, detects a wrong count, a sum that depends on which block
// is last and, interleaved, a part that is written too late, but not a missing fence.
#pragma once

#include "kernels/cuda/device_code/reduce.h"

namespace fettle::kernels::cuda {

// Whether the other `blocks` - 1 blocks that count with `counter` have all called this before: true
// in exactly one block. `counter` starts at 0, and is 0 again then. Every thread of the block calls
// it, when the block has written its part.
__device__ inline bool is_last_block(unsigned blocks, unsigned* counter) {
  __syncthreads();
  if (blocks == 1) return true;
  int last = 0;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(counter, blocks - 1) == blocks - 1 ? 1 : 0;
    __threadfence();
  }
  return __syncthreads_or(last) != 0;
}

// Returns the sum of value_of(0), ..., value_of(count - 1), in the order of a block of kThreads
// threads that calls block_sum, whatever the size of this block, a multiple of 32. Every thread
// calls it and gets the result.
template <int kThreads, class ValueOf>
__device__ auto sum_as_block_of(int count, ValueOf value_of) {
  using T = decltype(value_of(0));
  constexpr int kWarps = kThreads / kWarpSize;
  static_assert(kThreads % kWarpSize == 0 && kWarps <= kWarpSize);
  __shared__ T of_warps[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  for (int warp = static_cast<int>(threadIdx.x) / kWarpSize; warp < kWarps; warp += warps) {
    T mine = 0;
    for (int i = warp * kWarpSize + lane; i < count; i += kThreads) mine += value_of(i);
    mine = warp_sum(mine);
    if (lane == 0) of_warps[warp] = mine;
  }
  __syncthreads();
  const T all = warp_sum(lane < kWarps ? of_warps[lane] : T(0));
  __syncthreads();  // before the next call overwrites of_warps
  return all;
}

}  // namespace fettle::kernels::cuda
