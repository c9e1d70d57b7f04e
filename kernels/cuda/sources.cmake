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
  kernels/cuda/event_timer.cpp
  kernels/cuda/feed.cpp
  kernels/cuda/graph.cpp
  kernels/cuda/machine.cpp
  kernels/cuda/mailbox.cpp
  kernels/cuda/moment.cpp
  kernels/cuda/pool.cpp
  kernels/cuda/staging.cpp
  kernels/cuda/timeline.cpp
  kernels/cuda/workloads.cpp
  kernels/dropout/cuda.cu
  kernels/embedding/cuda.cu
  kernels/embedding/sort.cu
  kernels/gather/cuda.cu
  kernels/gelu/cuda.cu
  kernels/layer_norm/cuda.cu
  kernels/layer_norm/simple.cu
  kernels/linear/add_slices.cu
  kernels/linear/bias_gradient.cu
  kernels/linear/matrix_product.cu
  kernels/linear/simple.cu
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

# FETTLE_CUDA_CARRIED: what libfettle_cuda.so brings along of what the program has, too. It must not
# use the program's copy, nor may its symbols meet the program's.
set(FETTLE_CUDA_CARRIED
  base/cache_folder.cpp
  base/check.cpp
  base/file.cpp
  base/json.cpp
  kernels/cuda/launch_file.cpp
  kernels/cuda/tunable.cpp
  kernels/shapes.cpp
)
list(TRANSFORM FETTLE_CUDA_CARRIED PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM FETTLE_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM FETTLE_CUDA_LIBRARY_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)

# Which GPUs it is for, and what the launch configurations that are kept were measured with.
set(architectures ${CMAKE_CUDA_ARCHITECTURES})
if(NOT FETTLE_CUDA)
  set(architectures 80)  # of the emulator: from there on all
endif()
string(REPLACE ";" "," architectures "${architectures}")  # a ; would end the definition
set_source_files_properties(${PROJECT_SOURCE_DIR}/kernels/cuda/device.cpp PROPERTIES
  COMPILE_DEFINITIONS "FETTLE_CUDA_ARCHITECTURES=\"${architectures}\";FETTLE_VERSION=\"${PROJECT_VERSION}\"")

# Whose formulas the CPU has, too, and which give the same bits: no product may be fused with a sum.
# They are bound by bytes, so it costs nothing.
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/kernels/gather/cuda.cu ${PROJECT_SOURCE_DIR}/kernels/optimizer/cuda.cu
  ${PROJECT_SOURCE_DIR}/kernels/optimizer/step.cu
  PROPERTIES COMPILE_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
