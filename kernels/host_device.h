// FETTLE_HOST_DEVICE before a function: it runs on the CPU and on the GPU, so that a formula both
// need is written once. Under nvcc `__host__ __device__`, for every other compiler nothing.
#pragma once

#ifdef __CUDACC__
#define FETTLE_HOST_DEVICE __host__ __device__
#else
#define FETTLE_HOST_DEVICE
#endif
