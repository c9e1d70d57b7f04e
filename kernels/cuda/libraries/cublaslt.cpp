#include "kernels/cuda/libraries/cublaslt.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cuda/libraries/fall_back.h"
#include "kernels/cuda/libraries/plan_timer.h"

namespace fettle::kernels::cuda {
namespace {

// Alignment of the trainer's buffers, including 16-bit copies of parameters; the heuristic would
// assume 256.
constexpr std::uint32_t kAlignment = 32;

Status status_of(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return success();
  return io_error(what + ": " + cublasLtGetStatusName(status) + ", " +
                  cublasLtGetStatusString(status));
}

// One handle for each device.
class CublasLtLibrary {
 public:
  static Result<std::unique_ptr<CublasLtLibrary>> open() {
    auto library = std::make_unique<CublasLtLibrary>();
    FETTLE_TRY(status_of(cublasLtCreate(&library->handle), "starting cuBLASLt"));
    return library;
  }
  CublasLtLibrary() = default;
  CublasLtLibrary(const CublasLtLibrary&) = delete;
  CublasLtLibrary& operator=(const CublasLtLibrary&) = delete;
  ~CublasLtLibrary() {
    if (handle != nullptr) cublasLtDestroy(handle);
  }
  cublasLtHandle_t handle = nullptr;
};

cudaDataType_t library_type(DataType type) {
  if (type == DataType::kBFloat16) return CUDA_R_16BF;
  return type == DataType::kFloat16 ? CUDA_R_16F : CUDA_R_32F;
}

cublasLtEpilogue_t library_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kRelu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::kBiasGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::kGelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kSumOfA:
      return CUBLASLT_EPILOGUE_BGRADB;  // our A is its B
    case Epilogue::kNothing:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool has_vector(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kBiasRelu ||
         epilogue == Epilogue::kBiasGelu || epilogue == Epilogue::kSumOfA;
}

bool has_matrix(Epilogue epilogue) {
  return epilogue == Epilogue::kBiasGelu || epilogue == Epilogue::kGelu ||
         epilogue == Epilogue::kGeluGradient;
}

template <class T>
Status set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
           const T& value) {
  return status_of(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
                   "describing a matrix product to cuBLASLt");
}

// Describes a row-major matrix in memory in cuBLASLt's column-major terms.
Status make_layout(DataType type, std::int64_t rows, std::int64_t columns,
                   cublasLtMatrixLayout_t* layout) {
  return status_of(
      cublasLtMatrixLayoutCreate(layout, library_type(type), static_cast<std::uint64_t>(columns),
                                 static_cast<std::uint64_t>(rows), columns),
      "describing a matrix to cuBLASLt");
}

std::string words_of(const MatrixShape& shape) {
  return "a product of " + std::to_string(shape.rows) + " x " + std::to_string(shape.depth) +
         " by " + std::to_string(shape.depth) + " x " + std::to_string(shape.columns);
}

// All properties on which a plan depends, including the version of the library that made it.
std::string key_of(const MatrixShape& shape, const MatrixOptions& options) {
  std::string key = "cublaslt " + std::to_string(cublasLtGetVersion()) + " matmul";
  for (const std::int64_t number :
       {shape.rows, shape.columns, shape.depth, std::int64_t{shape.a_transposed},
        std::int64_t{shape.b_transposed}, static_cast<std::int64_t>(options.type),
        static_cast<std::int64_t>(options.result), std::int64_t{options.add},
        std::int64_t{options.tf32}, static_cast<std::int64_t>(options.epilogue)}) {
    key += " " + std::to_string(number);
  }
  return key;
}

// An algorithm's bytes in hexadecimal digits; cuBLASLt promises that they can be stored.
std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t word : algorithm.data) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 15U];
  }
  return text;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_of(const std::string& text) {
  constexpr std::size_t kDigitsOfWord = 16;
  cublasLtMatmulAlgo_t algorithm = {};
  if (text.size() != kDigitsOfWord * std::size(algorithm.data)) return std::nullopt;
  const char* from = text.data();
  for (std::uint64_t& word : algorithm.data) {
    const auto [end, error] = std::from_chars(from, from + kDigitsOfWord, word, 16);
    if (error != std::errc() || end != from + kDigitsOfWord) return std::nullopt;
    from = end;
  }
  return algorithm;
}

class Preference {
 public:
  ~Preference() {
    if (preference_ != nullptr) cublasLtMatmulPreferenceDestroy(preference_);
  }
  Preference() = default;
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  Status fill() {
    FETTLE_TRY(status_of(cublasLtMatmulPreferenceCreate(&preference_), "asking cuBLASLt"));
    const auto workspace = static_cast<std::uint64_t>(MatrixProduct::kWorkspaceBytes);
    FETTLE_TRY(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      FETTLE_TRY(set(attribute, kAlignment));
    }
    return success();
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <class T>
  Status set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    return status_of(
        cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
        "telling cuBLASLt what it may use");
  }
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

Result<MatrixProduct> MatrixProduct::plan(LibraryPlans& plans, const MatrixShape& shape,
                                          const MatrixOptions& options, bool timed) {
  Device& device = plans.device();
  MatrixProduct product(plans);
  FETTLE_ASSIGN(CublasLtLibrary * library, device.library<CublasLtLibrary>());
  product.handle_ = library->handle;
  product.add_ = options.add;
  FETTLE_TRY(device.reserve_scratch(kWorkspaceBytes));
  FETTLE_TRY(product.describe(shape, options));
  FETTLE_TRY(product.describe_epilogue(options.epilogue, shape));
  FETTLE_TRY(product.choose_algorithm(shape, options, timed));
  return product;
}

Status MatrixProduct::describe(const MatrixShape& shape, const MatrixOptions& options) {
  const bool tf32 = options.tf32 && options.type == DataType::kFloat32;
  const auto compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t description = nullptr;
  FETTLE_TRY(status_of(cublasLtMatmulDescCreate(&description, compute, CUDA_R_32F),
                       "describing a matrix product to cuBLASLt"));
  description_.reset(description);
  // cuBLASLt's A is our B, and the other way round.
  const cublasOperation_t of_a = shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_b = shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  FETTLE_TRY(set(description, CUBLASLT_MATMUL_DESC_TRANSA, of_a));
  FETTLE_TRY(set(description, CUBLASLT_MATMUL_DESC_TRANSB, of_b));
  cublasLtMatrixLayout_t layout = nullptr;
  FETTLE_TRY(make_layout(options.type, shape.a_transposed ? shape.depth : shape.rows,
                         shape.a_transposed ? shape.rows : shape.depth, &layout));
  a_.reset(layout);
  FETTLE_TRY(make_layout(options.type, shape.b_transposed ? shape.columns : shape.depth,
                         shape.b_transposed ? shape.depth : shape.columns, &layout));
  b_.reset(layout);
  FETTLE_TRY(make_layout(options.result, shape.rows, shape.columns, &layout));
  c_.reset(layout);
  return success();
}

// The heuristic reads the pointers' alignment, so it gets an address aligned to exactly kAlignment;
// run() sets the real pointers.
Status MatrixProduct::describe_epilogue(Epilogue epilogue, const MatrixShape& shape) {
  epilogue_ = epilogue;
  if (epilogue == Epilogue::kNothing) return success();
  cublasLtMatmulDesc_t description = description_.get();
  FETTLE_TRY(set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(epilogue)));
  const void* aligned = static_cast<std::byte*>(device_->scratch(kWorkspaceBytes)) + kAlignment;
  if (has_matrix(epilogue)) {
    // Our rows are its columns, so the matrix has the same stride as C.
    FETTLE_TRY(set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.columns));
  }
  return set_pointers(aligned, aligned, epilogue);
}

Status MatrixProduct::choose_algorithm(const MatrixShape& shape, const MatrixOptions& options,
                                       bool timed) {
  PlanChooser& plans = plans_->chooser();
  const std::string key = key_of(shape, options);
  const TimedPlan* const known = plans.known(key);
  if (known != nullptr && take_known(known->plan)) return success();  // false: not accepted here
  Preference preference;
  FETTLE_TRY(preference.fill());
  std::array<cublasLtMatmulHeuristicResult_t, PlanChooser::kMostTimed> found = {};
  int count = 0;
  // Its C, which is added, and its D, which is written, are the same matrix here.
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, description_.get(), b_.get(), a_.get(), c_.get(), c_.get(), preference.get(),
      static_cast<int>(found.size()), found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
    return not_found("cuBLASLt has no algorithm for " + words_of(shape) + ": " +
                     cublasLtGetStatusString(status));
  }
  FETTLE_TRY(status_of(status, "cuBLASLt, " + words_of(shape)));
  FETTLE_TRY(status_of(found[0].state, "cuBLASLt, " + words_of(shape)));
  algorithm_ = found[0].algo;
  // While the device only measures memory, blocks have no address to run on.
  if (device_->is_measuring()) return success();
  return choose_among(key, shape, options, timed && plans.times(),
                      std::span(found).first(static_cast<std::size_t>(count)));
}

Status MatrixProduct::choose_among(const std::string& key, const MatrixShape& shape,
                                   const MatrixOptions& options, bool timed,
                                   std::span<const cublasLtMatmulHeuristicResult_t> found) {
  const std::int64_t a_bytes = shape.rows * shape.depth * size_of(options.type);
  const std::int64_t b_bytes = shape.depth * shape.columns * size_of(options.type);
  const std::int64_t c_bytes = shape.rows * shape.columns * size_of(options.result);
  const std::int64_t vector_bytes =
      has_vector(options.epilogue)
          // A bias for each column, or sums (kSumOfA) for each row; at most fp32.
          ? std::max(shape.rows, shape.columns) * std::int64_t{sizeof(float)}
          : 0;
  const std::int64_t matrix_bytes = has_matrix(options.epilogue) ? c_bytes : 0;
  // A, B, C and the epilogue's vector and matrix, in the order of `arrays` below.
  const std::int64_t bytes[] = {a_bytes, b_bytes, c_bytes, vector_bytes, matrix_bytes};
  const auto enqueue_candidate = [&](std::size_t i, std::span<void* const> arrays) -> Status {
    FETTLE_TRY(status_of(found[i].state, "cuBLASLt"));
    algorithm_ = found[i].algo;
    FETTLE_TRY(set_pointers(arrays[3], arrays[4], options.epilogue));
    return enqueue(arrays[0], arrays[1], arrays[2]);
  };
  Result<std::size_t> best = std::size_t{0};
  if (timed && found.size() > 1) {
    std::vector<std::string> names;
    for (const auto& one : found) names.push_back(text_of(one.algo));
    best = fastest_plan(*plans_, key, names, bytes, enqueue_candidate);
  } else {
    best = first_that_runs(found.size(), [&](std::size_t i) {
      return run_once(*device_, bytes, [&](auto arrays) { return enqueue_candidate(i, arrays); });
    });
  }
  if (!best.ok()) return best.error();
  algorithm_ = found[*best].algo;  // trying the others has overwritten it
  return success();
}

bool MatrixProduct::take_known(const std::string& text) {
  const auto known = algorithm_of(text);
  if (!known) return false;
  cublasLtMatmulHeuristicResult_t checked = {};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(
      handle_, description_.get(), b_.get(), a_.get(), c_.get(), c_.get(), &*known, &checked);
  if (status != CUBLAS_STATUS_SUCCESS || checked.state != CUBLAS_STATUS_SUCCESS) return false;
  if (checked.workspaceSize > static_cast<std::size_t>(kWorkspaceBytes)) return false;
  algorithm_ = *known;
  return true;
}

Status MatrixProduct::set_pointers(const void* vector, const void* matrix, Epilogue epilogue) {
  cublasLtMatmulDesc_t description = description_.get();
  if (has_vector(epilogue)) {
    FETTLE_TRY(set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector));
  }
  if (!has_matrix(epilogue)) return success();
  return set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, matrix);
}

Status MatrixProduct::enqueue(ConstBuffer a, ConstBuffer b, Buffer c) {
  const float one = 1;
  const float kept = add_ ? 1 : 0;  // beta: the factor of the previous C
  return status_of(
      cublasLtMatmul(handle_, description_.get(), &one, b, b_.get(), a, a_.get(), &kept, c,
                     c_.get(), c, c_.get(), &algorithm_, device_->scratch(kWorkspaceBytes),
                     static_cast<std::size_t>(kWorkspaceBytes), device_->stream()),
      "cuBLASLt");
}

void MatrixProduct::run(ConstBuffer a, ConstBuffer b, Buffer c, const void* vector,
                        const void* matrix) {
  Status done = set_pointers(vector, matrix, epilogue_);
  if (done.ok()) done = enqueue(a, b, c);
  CHECK(done.ok(), done.error().message + kHowToGoOn);
}

}  // namespace fettle::kernels::cuda
