// Shared by the kernels' tests: typed arrays with reproducible contents, comparisons in words, the
// backends to test, and PyTorch's numbers (tests/golden/pytorch_golden.py).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kernels/aligned.h"
#include "kernels/backend.h"

namespace fettle::kernels::testing {

using Floats = std::vector<float>;

// The backend "onednn" may refuse 16-bit types (made_if_typed).
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16};

// Whether the backend "cuda" runs on a GPU, not on the emulator.
#ifdef FETTLE_GPU_TESTS
inline constexpr bool kOnGpu = true;
#else
inline constexpr bool kOnGpu = false;
#endif

// A Buffer of any type that is filled from, and read as, fp32 numbers.
class Array {
 public:
  Array(DataType type, std::int64_t count);  // zeros
  Array(DataType type, const Floats& values);

  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  Floats floats() const;

 private:
  DataType type_;
  std::int64_t count_;
  AlignedArray<std::byte> bytes_;
};

// Multiples of 1/64 in [-1, 1]: exact in bf16, and reproducible from `seed`.
Floats random_floats(std::int64_t count, std::uint64_t seed);

// found - expected| <= tolerance * (largest |expected|), for every element, because the error of a
// sum is relative to its summands, not to the sum.
void expect_close(const Floats& found, const Floats& expected, double tolerance,
                  const std::string& what);

// The backends of this build and machine: "reference", "onednn" if it exists, and "cuda", on the
// emulated device (kernels/emulator/).
std::vector<std::string> backend_names();
// Lives until the process ends, so that a test's operations and memory never outlive it.
Backend* backend(std::string_view name);
// The name that gtest gives to a test instantiated with backend_names().
std::string backend_name_of(const ::testing::TestParamInfo<std::string>& instance);

// Creates an operation or fails the test.
template <class Op>
std::unique_ptr<Op> must(Result<std::unique_ptr<Op>> made) {
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return std::move(made).value();
}

// The same, or nullptr if the test should skip a type: bf16 on a processor without it, and fp16 in
// the backend "onednn". Any other refusal fails the test: tests on a GPU must find the operations
// that a library refuses.
template <class Op>
std::unique_ptr<Op> made_if_typed(std::string_view backend, DataType type,
                                  Result<std::unique_ptr<Op>> made) {
  if (made.ok()) return std::move(made).value();
  const bool may_lack = backend == "onednn" && type != DataType::kFloat32;
  if (!may_lack) ADD_FAILURE() << backend << ": " << made.error().message;
  return nullptr;
}

// The cases of kernels/testdata/NAME.json.
Json::Array golden_cases(const std::string& name);
Floats floats_of(const Json& object, std::string_view key);
std::int64_t integer_of(const Json& object, std::string_view key);
// `otherwise` if the object has no such member.
float number_of(const Json& object, std::string_view key, float otherwise);
bool boolean_of(const Json& object, std::string_view key);

}  // namespace fettle::kernels::testing
