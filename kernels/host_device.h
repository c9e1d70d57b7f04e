// FETTLE_HOST_DEVICE before a function that device code calls, too: formulas are written once, for
// every backend. Such a function uses nothing but arithmetic, <cmath> and its arguments.
#pragma once

#ifdef __CUDACC__
#define FETTLE_HOST_DEVICE __host__ __device__
#else
#define FETTLE_HOST_DEVICE
#endif
