# The CUDA code of all operations, in one list for nvcc and for the emulator.
#
# FETTLE_CUDA_SOURCES: ours; runs on a GPU and on the emulator.
set(FETTLE_CUDA_SOURCES
  kernels/add/add.cu
  kernels/attention/own_attention.cu
  kernels/batch_norm/batch_norm.cu
  kernels/cast/cast.cu
  kernels/conv/add_bias.cu
  kernels/conv/own_conv.cu
  kernels/backends/cuda/backend.cpp
  kernels/cuda/runtime/device.cpp
  kernels/cuda/runtime/errors.cpp
  kernels/cuda/libraries/fall_back.cpp
  kernels/cuda/libraries/library_plans.cpp
  kernels/cuda/runtime/upload_buffers.cpp
  kernels/cuda/runtime/machine.cpp
  kernels/cuda/libraries/plan_timer.cpp
  kernels/cuda/runtime/stream.cpp
  kernels/cuda/runtime/free_blocks.cpp
  kernels/cuda/runtime/pool.cpp
  kernels/cuda/runtime/staging.cpp
  kernels/dropout/dropout.cu
  kernels/embedding/embedding.cu
  kernels/embedding/sort.cu
  kernels/gather/gather.cu
  kernels/gelu/gelu.cu
  kernels/layer_norm/layer_norm.cu
  kernels/layer_norm/any_width.cu
  kernels/linear/add_slices.cu
  kernels/linear/bias_gradient.cu
  kernels/linear/matrix_product.cu
  kernels/linear/own_linear.cu
  kernels/optimizer/optimizer.cu
  kernels/optimizer/step.cu
  kernels/optimizer/table.cpp
  kernels/pool/pool.cu
  kernels/quantize/quantize.cu
  kernels/relu/relu.cu
  kernels/softmax_cross_entropy/softmax_cross_entropy.cu
)

# FETTLE_CUDA_LIBRARY_SOURCES: calls cuBLASLt and cuDNN; only on a GPU.
set(FETTLE_CUDA_LIBRARY_SOURCES
  kernels/attention/cudnn_attention.cpp
  kernels/conv/cudnn_conv.cpp
  kernels/backends/cuda/choice.cpp
  kernels/cuda/libraries/cublaslt.cpp
  kernels/cuda/libraries/cudnn.cpp
  kernels/cuda/runtime/driver_calls.cpp
  kernels/cuda/runtime/nvtx.cpp
  kernels/linear/cublaslt_linear.cpp
)

# FETTLE_CUDA_CARRIED: sources that libfettle_cuda.so shares with the program. It needs its own
# copy, and its symbols must not meet the program's.
set(FETTLE_CUDA_CARRIED
  base/cache_folder.cpp
  base/check.cpp
  base/file.cpp
  base/json.cpp
  kernels/cuda/libraries/plan_chooser.cpp
  kernels/cuda/libraries/plan_file.cpp
  kernels/shapes.cpp
)
list(TRANSFORM FETTLE_CUDA_CARRIED PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM FETTLE_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM FETTLE_CUDA_LIBRARY_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)

# The supported GPUs, and the version of Fettle that kept plans must match.
set(architectures ${CMAKE_CUDA_ARCHITECTURES})
if(NOT FETTLE_CUDA)
  set(architectures 80)  # of the emulator: 8.0 and later
endif()
string(REPLACE ";" "," architectures "${architectures}")  # a ; would end the definition
set_source_files_properties(${PROJECT_SOURCE_DIR}/kernels/cuda/runtime/device.cpp PROPERTIES
  COMPILE_DEFINITIONS "FETTLE_CUDA_ARCHITECTURES=\"${architectures}\"")
set_source_files_properties(${PROJECT_SOURCE_DIR}/kernels/cuda/libraries/library_plans.cpp PROPERTIES
  COMPILE_DEFINITIONS "FETTLE_VERSION=\"${PROJECT_VERSION}\"")

# Sources that share formulas with the CPU and give the same bits: no product may be fused with a
# sum. They are bound by bytes, so it costs nothing.
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/kernels/gather/gather.cu ${PROJECT_SOURCE_DIR}/kernels/optimizer/optimizer.cu
  ${PROJECT_SOURCE_DIR}/kernels/optimizer/step.cu
  PROPERTIES COMPILE_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
