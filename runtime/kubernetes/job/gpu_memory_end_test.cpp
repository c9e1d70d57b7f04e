#include "runtime/kubernetes/job/gpu_memory_end.h"

#include <gtest/gtest.h>

namespace fettle::kubernetes {
namespace {

TEST(GpuMemoryEnd, TheTrainerSaysHowMuchItNeeds) {
  EXPECT_EQ(
      gpu_memory_short("fettle-trainer: too little GPU memory (33285996544 bytes needed): the "
                       "training needs at least 31 GiB of the GPU's memory"),
      33285996544.0);
  EXPECT_EQ(gpu_memory_short("too little GPU memory (much)"), 0)
      << "it had too little all the same";
  EXPECT_EQ(gpu_memory_short("too little GPU memory (-7 bytes needed)"), 0);
}

TEST(GpuMemoryEnd, OthersSayItInTheWordsOfTheirFramework) {
  for (const char* const words :
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 9.50 GiB",
        "RuntimeError: CUDA error: out of memory", "cudaErrorMemoryAllocation",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 8589934592 bytes.",
        "CUDA error: unrecognized error code", "torch.OutOfMemoryError: HIP out of memory.",
        "fettle-trainer: the GPU has no 512 MB more: of its 10240 MB, 12 MB are free"}) {
    EXPECT_EQ(gpu_memory_short(words), 0) << words;
  }
}

TEST(GpuMemoryEnd, OtherEndsAreNoMatterOfTheGpu) {
  for (const char* const words : {"", "MemoryError", "out of memory",
                                  "RuntimeError: CUDA error: device-side assert triggered",
                                  "the training needs at least 2 GiB of memory; 1 GiB are there"}) {
    EXPECT_EQ(gpu_memory_short(words), std::nullopt) << words;
  }
}

}  // namespace
}  // namespace fettle::kubernetes
