# The CUDA code of all operations, in one list for nvcc and for the emulator.
#
# FETTLE_CUDA_SOURCES: ours; runs on a GPU and on the emulator.
set(FETTLE_CUDA_SOURCES
  kernels/attention/simple.cu
  kernels/batch_norm/cuda.cu
  kernels/conv/simple.cu
  kernels/cuda/device.cpp
  kernels/cuda/errors.cpp
  kernels/cuda/pool.cpp
  kernels/linear/bias_gradient.cu
  kernels/linear/simple.cu
  kernels/linear/tiled_product.cu
  kernels/optimizer/cuda.cu
  kernels/optimizer/step.cu
  kernels/optimizer/table.cpp
)

# FETTLE_CUDA_LIBRARY_SOURCES: calls cuBLASLt and cuDNN; only on a GPU.
set(FETTLE_CUDA_LIBRARY_SOURCES
  kernels/cuda/choice.cpp
)
list(TRANSFORM FETTLE_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM FETTLE_CUDA_LIBRARY_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
