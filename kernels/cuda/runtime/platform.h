// CUDA's headers: NVIDIA's, or the emulator's (kernels/emulator/), which have the same names and
// come first on the include path of an emulated build.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
