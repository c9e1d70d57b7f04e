// Matrix products by cuBLASLt, in the row-major terms of all operations:
//
//   C[rows, columns] = A[rows, depth] B[depth, columns]      (or C +=)
//
// cuBLASLt is column-major. A row-major matrix is the transpose of a column-major one, so it
// computes C' = B' A', and nothing is copied. Sums are fp32. Plans are made once: the first few of
// cuBLASLt's heuristic are timed (plan_chooser.h). Running a plan allocates nothing and can be
// captured in a CUDA graph. The same operands give the same bits on a single stream, which NVIDIA
// promises for every algorithm.
//
// Host code; compiled only with CUDA. Belongs to the device's thread.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/libraries/library_plans.h"

namespace fettle::kernels::cuda {

// Work fused into a product while its results are in registers.
enum class Epilogue : std::uint8_t {
  kNothing,
  kBias,      // + vector[column], of A's type
  kBiasRelu,  // and then max(0, .)
  kRelu,
  kBiasGelu,      // matrix = C + vector[column], and C = GELU(matrix), in the tanh form
  kGelu,          // the same without a bias
  kGeluGradient,  // C *= GELU'(matrix)
  kSumOfA,        // vector[row] = sum of A[row, .], fp32: a bias gradient
};
// For epilogues with GELU, `matrix` has C's layout and type, and its columns are a multiple of
// this.
inline constexpr std::int64_t kGeluColumns = 8;

struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool a_transposed = false;  // A is stored as [depth, rows]
  bool b_transposed = false;  // B is stored as [columns, depth]
};

struct MatrixOptions {
  DataType type = DataType::kFloat32;    // of A and B
  DataType result = DataType::kFloat32;  // of C
  bool add = false;                      // to the contents of C
  bool tf32 = false;
  Epilogue epilogue = Epilogue::kNothing;
};

class MatrixProduct {
 public:
  // Bytes of the device's scratch; other data may follow them.
  static constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

  // Without `timed`, takes the first algorithm of the heuristic that runs. Errors: kNotFound, with
  // the shape, if cuBLASLt has no algorithm; otherwise cuBLASLt's message.
  static Result<MatrixProduct> plan(LibraryPlans& plans, const MatrixShape& shape,
                                    const MatrixOptions& options, bool timed = true);

  // All pointers are 32-byte aligned. `vector` and `matrix`: operands of the epilogue, else
  // nullptr.
  void run(ConstBuffer a, ConstBuffer b, Buffer c, const void* vector,
           const void* matrix = nullptr);

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDescOpaque_t* p) const { cublasLtMatmulDescDestroy(p); }
    void operator()(cublasLtMatrixLayoutOpaque_t* p) const { cublasLtMatrixLayoutDestroy(p); }
  };
  using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy>;

  explicit MatrixProduct(LibraryPlans& plans) : plans_(&plans), device_(&plans.device()) {}
  Status describe(const MatrixShape& shape, const MatrixOptions& options);
  Status describe_epilogue(Epilogue epilogue, const MatrixShape& shape);
  Status choose_algorithm(const MatrixShape& shape, const MatrixOptions& options, bool timed);
  // Sets algorithm_ to the fastest algorithm found on this device, or, without `timed`, to the
  // first that runs.
  Status choose_among(const std::string& key, const MatrixShape& shape,
                      const MatrixOptions& options, bool timed,
                      std::span<const cublasLtMatmulHeuristicResult_t> found);
  // Takes the algorithm in `text`, from an earlier process; returns whether this product can run
  // it.
  bool take_known(const std::string& text);
  Status set_pointers(const void* vector, const void* matrix, Epilogue epilogue);
  Status enqueue(ConstBuffer a, ConstBuffer b, Buffer c);

  LibraryPlans* plans_;
  Device* device_;
  cublasLtHandle_t handle_ = nullptr;
  Description description_;
  Layout a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  Epilogue epilogue_ = Epilogue::kNothing;
  bool add_ = false;
};

}  // namespace fettle::kernels::cuda
