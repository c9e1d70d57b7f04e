// Gathering samples on a CPU: what the trainer's BatchWriter and the CPU backends' GatherOp do.
//
// Immutable; safe to share between threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"

namespace fettle::kernels {

// What becomes of the 256 bytes.
std::array<float, 256> values_of_bytes(const ImageLook& look);
// Rounded to one of the 16-bit types.
std::array<std::uint16_t, 256> round_values(const std::array<float, 256>& values, DataType type);

class SampleWriter {
 public:
  SampleWriter(const ImageLook& look, DataType type);

  // GatherOp::run, of samples in host memory.
  void write(const Samples& samples, std::span<const std::int64_t> indices, std::uint32_t epoch,
             Buffer x, std::int32_t* labels) const;

 private:
  // `convert`: from a pixel to what the network takes.
  template <class Pixel, class Value, class Convert>
  void write_as(const Samples& samples, std::span<const std::int64_t> indices, std::uint32_t epoch,
                Convert convert, Buffer x) const;
  void write_bytes(const Samples& samples, std::span<const std::int64_t> indices,
                   std::uint32_t epoch, Buffer x) const;
  void write_floats(const Samples& samples, std::span<const std::int64_t> indices,
                    std::uint32_t epoch, Buffer x) const;

  ImageLook look_;
  DataType type_;
  std::array<float, 256> floats_;
  std::array<std::uint16_t, 256> rounded_{};  // of a 16-bit type
};

std::unique_ptr<GatherOp> reference_gather(const Samples& samples, const ImageLook& look,
                                           const PlanOptions& plan);

}  // namespace fettle::kernels
