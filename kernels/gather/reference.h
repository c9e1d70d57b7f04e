// Gathers samples on a CPU, for the trainer's BatchWriter and the CPU backends' GatherOp.
//
// Immutable; safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/gather/values.h"

namespace fettle::kernels {

class SampleWriter {
 public:
  SampleWriter(const ImageLook& look, DataType type);

  // GatherOp::run for samples in host memory.
  void write(const Samples& samples, std::span<const std::int64_t> indices, std::uint32_t epoch,
             Buffer x, std::int32_t* labels) const;

 private:
  // `convert`: from a pixel to the network's input.
  template <class Pixel, class Value, class Convert>
  void write_as(const Samples& samples, std::span<const std::int64_t> indices, std::uint32_t epoch,
                Convert convert, Buffer x) const;
  void write_bytes(const Samples& samples, std::span<const std::int64_t> indices,
                   std::uint32_t epoch, Buffer x) const;
  void write_floats(const Samples& samples, std::span<const std::int64_t> indices,
                    std::uint32_t epoch, Buffer x) const;

  ImageLook look_;
  DataType type_;
  ByteValues<float> floats_;
  ByteValues<std::uint16_t> rounded_{};  // of a 16-bit type
};

std::unique_ptr<GatherOp> reference_gather(const Samples& samples, const ImageLook& look,
                                           const PlanOptions& plan);

}  // namespace fettle::kernels
