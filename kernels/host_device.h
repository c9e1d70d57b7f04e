// FETTLE_HOST_DEVICE before a function lets it run on the CPU and on the GPU, so that a shared
// formula is written once. `__host__ __device__` under nvcc, empty for every other compiler.
#pragma once

#ifdef __CUDACC__
#define FETTLE_HOST_DEVICE __host__ __device__
#else
#define FETTLE_HOST_DEVICE
#endif
