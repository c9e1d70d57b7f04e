# The CUDA toolchain: enables the language, and makes the imported targets
#   gpu::runtime  gpu::cublasLt  gpu::cudnn  gpu::nvrtc  gpu::nccl
# from NVIDIA's PyPI packages (scripts/cuda.py), or from a machine's own nvcc and the packages that
# PyTorch brought along. Included after project(), before anything that uses CUDA.
#
# Why not find_package(CUDAToolkit): the packages have neither lib64 nor stubs nor libX.so without a
# version, and CMake's module wants all three (docs/decisions/0016-cuda-toolchain.md).

set(FETTLE_CACHE "$ENV{XDG_CACHE_HOME}")
if(NOT FETTLE_CACHE)
  set(FETTLE_CACHE "$ENV{HOME}/.cache")
endif()
set(NVIDIA_WHEELS "${FETTLE_CACHE}/fettle/cuda-13.0.2/nvidia" CACHE PATH
    "The folder `nvidia` of a Python's site-packages, with cu13, cudnn and nccl")
# 1.19 was made for cuDNN 9.19; 1.32 has later mends (docs/decisions/0016-cuda-toolchain.md).
set(FETTLE_CUDNN_FRONTEND_VERSION 1.32.0 CACHE STRING
    "Which of the installed versions of cudnn-frontend: 1.19.0 or 1.32.0")
set(FETTLE_CUDNN_FRONTEND "" CACHE PATH
    "Headers of another cudnn-frontend: the folder that has cudnn_frontend.h")
if(NOT FETTLE_CUDNN_FRONTEND)
  set(FETTLE_CUDNN_FRONTEND "${NVIDIA_WHEELS}/../cudnn-frontend-${FETTLE_CUDNN_FRONTEND_VERSION}/include")
endif()

if(NOT EXISTS "${NVIDIA_WHEELS}/cu13")
  message(FATAL_ERROR "FETTLE_CUDA is on, and there is no CUDA toolchain in ${NVIDIA_WHEELS}. Run "
    "scripts/cuda.py, or name the site-packages/nvidia of a Python with torch 2.11 for CUDA 13 by "
    "-DNVIDIA_WHEELS=")
endif()
if(NOT EXISTS "${FETTLE_CUDNN_FRONTEND}/cudnn_frontend.h")
  message(FATAL_ERROR "there is no cudnn_frontend.h in ${FETTLE_CUDNN_FRONTEND}. Run scripts/cuda.py, "
    "or name the folder by -DFETTLE_CUDNN_FRONTEND=")
endif()

# The packages' nvcc compiles as it is, but does not find its own libraries to link with, which CMake
# tries when it identifies the compiler.
if(NOT CMAKE_CUDA_COMPILER AND EXISTS "${NVIDIA_WHEELS}/cu13/bin/nvcc")
  set(CMAKE_CUDA_COMPILER "${NVIDIA_WHEELS}/cu13/bin/nvcc")
  set(CMAKE_CUDA_FLAGS_INIT "-L${NVIDIA_WHEELS}/cu13/lib")
endif()
# 90a: H100 and H200, with the instructions that exist only there.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90a-real CACHE STRING "Compute capabilities to compile for")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.0)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is CUDA ${CMAKE_CUDA_COMPILER_VERSION}, expected 13.0 or "
    "later. Name another nvcc by -DCMAKE_CUDA_COMPILER=, or leave it out to take that of scripts/cuda.py")
endif()
# CUDA follows CMAKE_CXX_STANDARD, but C++20 in CUDA is news to Debian 12's CMake.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
if(CCACHE_PROGRAM)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# The target gpu::<name>, from the one file of <package>/lib that is called <pattern>.
function(fettle_cuda_library name package pattern)
  file(GLOB found "${NVIDIA_WHEELS}/${package}/lib/${pattern}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${NVIDIA_WHEELS}/${package}/lib has ${count} files ${pattern}, expected 1")
  endif()
  add_library(gpu::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(gpu::${name} PROPERTIES IMPORTED_LOCATION "${found}" IMPORTED_NO_SONAME FALSE
    INTERFACE_INCLUDE_DIRECTORIES "${NVIDIA_WHEELS}/${package}/include")
endfunction()
fettle_cuda_library(cublasLt cu13 "libcublasLt.so.[0-9]*")
fettle_cuda_library(cudnn cudnn "libcudnn.so.[0-9]*")
fettle_cuda_library(nvrtc cu13 "libnvrtc.so.[0-9]*")
fettle_cuda_library(nccl nccl "libnccl.so.[0-9]*")

# Headers alone: the runtime library itself is linked statically, by CUDA_RUNTIME_LIBRARY.
add_library(gpu::runtime INTERFACE IMPORTED GLOBAL)
target_include_directories(gpu::runtime SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}
                           "${NVIDIA_WHEELS}/cu13/include")
