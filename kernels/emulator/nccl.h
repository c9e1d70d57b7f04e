// The part of NCCL that the communicator uses (kernels/cuda/libraries/nccl.cpp), for the emulator:
// the names, numbers and meanings of NVIDIA's nccl.h (2.28). Emulated GPUs of threads and of
// processes of one machine all-reduce over loopback (fabric.h). Comes first on the include path of
// code built for the emulator.
//
// As in NCCL, a call may return before its work is on the stream (ncclInProgress), and no other
// call may be made until ncclCommGetAsyncError reports that it is; a collective whose other members
// do not arrive, or are killed, never ends, and nor does its stream, until the communicator is
// aborted. Every communicator is non-blocking. Unlike in NCCL, members that make different calls
// end the program with a message. Usable from several threads, except two calls on one communicator
// at once.
#pragma once

#include <cstddef>

#include "kernels/emulator/cuda_runtime.h"

// NOLINTBEGIN(readability-identifier-naming): the names are NCCL's.

using ncclComm_t = struct ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclRedOp_t : int { ncclSum = 0 };
enum ncclDataType_t : int { ncclFloat = 7 };
struct ncclConfig_t {
  int blocking = 1;
};
inline constexpr ncclConfig_t NCCL_CONFIG_INITIALIZER;

ncclResult_t ncclGetVersion(int* version);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int members, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);

// NOLINTEND(readability-identifier-naming)

namespace fettle::kernels::emulator {

// Sets the number of polls after which a call's work is on its stream, for the whole process;
// initially 0, or FETTLE_EMULATOR_NCCL_POLLS.
void set_nccl_polls(int polls);

}  // namespace fettle::kernels::emulator
