// bf16 and fp16 in the reference operations: operands are widened, computed with in fp32, and
// results are rounded (to nearest even). So bf16 is "activations stored as bf16, arithmetic in
// fp32", as in the fast backends, and so is fp16.
//
// A Floats belongs to one operand of one operation object; not synchronised.
#pragma once

#include <cstdint>

#include "kernels/aligned.h"
#include "kernels/backend.h"
#include "kernels/cast/loops.h"

namespace fettle::kernels {

class Floats {
 public:
  // `capacity`: maximum elements of an operand.
  Floats(DataType type, std::int64_t capacity)
      : type_(type), scratch_(type == DataType::kFloat32 ? 0 : capacity) {}

  // Returns `count` elements of `from` as fp32: `from` itself, or a widened copy.
  const float* read(ConstBuffer from, std::int64_t count) {
    if (type_ == DataType::kFloat32) return static_cast<const float*>(from);
    widen_all(type_, count, static_cast<const std::uint16_t*>(from), scratch_.data());
    return scratch_.data();
  }

  // The same, to be changed in place; call write() afterwards.
  float* edit(Buffer buffer, std::int64_t count) {
    read(buffer, count);
    return target(buffer);
  }

  // Returns the fp32 buffer for a result that write() will put into `to`. nullptr stays nullptr.
  float* target(Buffer to) {
    if (type_ == DataType::kFloat32 || to == nullptr) return static_cast<float*>(to);
    return scratch_.data();
  }

  // Rounds the contents of target(to) into `to`.
  void write(Buffer to, std::int64_t count) const {
    if (type_ == DataType::kFloat32 || to == nullptr) return;
    round_all(type_, count, scratch_.data(), static_cast<std::uint16_t*>(to));
  }

 private:
  DataType type_;
  AlignedArray<float> scratch_;
};

}  // namespace fettle::kernels
