// How the reference operations meet bf16 and fp16: they compute in fp32 throughout; what they read
// is widened before, what they write is rounded (to nearest even) after. So bf16 is "activations
// stored as bf16, arithmetic in fp32", which is also what the fast backends do, and so is fp16.
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
  // `capacity` elements at most.
  Floats(DataType type, std::int64_t capacity)
      : type_(type), scratch_(type == DataType::kFloat32 ? 0 : capacity) {}

  // `count` elements of `from` as fp32: `from` itself, or a widened copy.
  const float* read(ConstBuffer from, std::int64_t count) {
    if (type_ == DataType::kFloat32) return static_cast<const float*>(from);
    widen_all(type_, count, static_cast<const std::uint16_t*>(from), scratch_.data());
    return scratch_.data();
  }

  // The same to change in place; call write() after.
  float* edit(Buffer buffer, std::int64_t count) {
    read(buffer, count);
    return target(buffer);
  }

  // The fp32 buffer in which to compute what write() puts into `to`. nullptr stays nullptr.
  float* target(Buffer to) {
    if (type_ == DataType::kFloat32 || to == nullptr) return static_cast<float*>(to);
    return scratch_.data();
  }

  // Rounds what was computed in target(to) into `to`.
  void write(Buffer to, std::int64_t count) const {
    if (type_ == DataType::kFloat32 || to == nullptr) return;
    round_all(type_, count, scratch_.data(), static_cast<std::uint16_t*>(to));
  }

 private:
  DataType type_;
  AlignedArray<float> scratch_;
};

}  // namespace fettle::kernels
