// There is no NCCL on the emulator (cuda/nccl.cpp has the real one).
#include "kernels/cuda/nccl.h"

namespace fettle::kernels::cuda {

Result<std::unique_ptr<CommunicatorMaker>> nccl_communicators() {
  return io_error("an emulated GPU has no NCCL to reach others by");
}

}  // namespace fettle::kernels::cuda
