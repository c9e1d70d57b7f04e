// Normalised values of pixels: computed once for the 256 bytes, and in double for each float, so
// that every backend shows a network the same values, bit for bit. Usable from any thread.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cast/loops.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

FETTLE_HOST_DEVICE inline float normalized(float pixel, double mean, double deviation) {
  return static_cast<float>((static_cast<double>(pixel) - mean) / deviation);
}

template <class Value>
using ByteValues = std::array<Value, 256>;

inline ByteValues<float> values_of_bytes(const ImageLook& look) {
  ByteValues<float> values{};
  for (std::size_t byte = 0; byte < values.size(); ++byte) {
    const double scaled = static_cast<double>(byte) / 255;
    values[byte] = static_cast<float>((scaled - look.mean) / look.deviation);
  }
  return values;
}

// Rounds to one of the 16-bit types.
inline ByteValues<std::uint16_t> round_values(const ByteValues<float>& values, DataType type) {
  ByteValues<std::uint16_t> rounded{};
  round_all(type, std::ssize(values), values.data(), rounded.data());
  return rounded;
}

}  // namespace fettle::kernels
