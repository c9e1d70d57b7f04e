# The CUDA code of all operations, in one list for nvcc and for the emulator.
#
# FETTLE_CUDA_SOURCES: ours; runs on a GPU and on the emulator.
set(FETTLE_CUDA_SOURCES
  kernels/add/cuda.cu
  kernels/attention/simple.cu
  kernels/batch_norm/cuda.cu
  kernels/cast/cuda.cu
  kernels/conv/add_bias.cu
  kernels/conv/simple.cu
  kernels/cuda/backend.cpp
  kernels/cuda/device.cpp
  kernels/cuda/errors.cpp
  kernels/cuda/graph.cpp
  kernels/cuda/mailbox.cpp
  kernels/cuda/pool.cpp
  kernels/cuda/staging.cpp
  kernels/cuda/timeline.cpp
  kernels/dropout/cuda.cu
  kernels/embedding/cuda.cu
  kernels/embedding/sort.cu
  kernels/gather/cuda.cu
  kernels/gelu/cuda.cu
  kernels/layer_norm/cuda.cu
  kernels/layer_norm/simple.cu
  kernels/linear/add_slices.cu
  kernels/linear/bias_gradient.cu
  kernels/linear/simple.cu
  kernels/linear/tiled_product.cu
  kernels/optimizer/cuda.cu
  kernels/optimizer/step.cu
  kernels/optimizer/table.cpp
  kernels/pool/cuda.cu
  kernels/relu/cuda.cu
  kernels/softmax_cross_entropy/cuda.cu
)

# FETTLE_CUDA_LIBRARY_SOURCES: calls cuBLASLt and cuDNN; only on a GPU.
set(FETTLE_CUDA_LIBRARY_SOURCES
  kernels/attention/cudnn.cpp
  kernels/conv/cudnn.cpp
  kernels/cuda/choice.cpp
  kernels/cuda/cublaslt.cpp
  kernels/cuda/cudnn.cpp
  kernels/cuda/nvtx.cpp
  kernels/linear/cublaslt.cpp
)
list(TRANSFORM FETTLE_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM FETTLE_CUDA_LIBRARY_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)

# Whose formulas the CPU has, too, and which give the same bits: no product may be fused with a sum.
# They are bound by bytes, so it costs nothing.
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/kernels/gather/cuda.cu ${PROJECT_SOURCE_DIR}/kernels/optimizer/cuda.cu
  ${PROJECT_SOURCE_DIR}/kernels/optimizer/step.cu
  PROPERTIES COMPILE_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
