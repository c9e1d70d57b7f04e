// A kernel that spills and does not read 16 bytes at once: scripts/cuda_lint.py must refuse it.
__global__ void spill(const float* from, float* to, int stride) {
  constexpr int kCount = 40;
  float values[kCount];
  for (int i = 0; i < kCount; ++i) values[i] = from[i * stride + threadIdx.x];
  for (int i = 0; i < kCount; ++i) to[i] = values[(i * stride) % kCount];
}
