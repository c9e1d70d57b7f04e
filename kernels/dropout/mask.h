// The elements that dropout keeps: a pure function of (key, layer, epoch, sample, element), the
// same in every backend, whatever the batch, the worker or the order of work.
//
// Element e of the sample with global index i: word e % 4 of Philox under the key `seed` with
// counter {e / 4, low half of i, epoch, layer + (high half of i) * 2^16}; kept if the word is at
// least rate * 2^32. Usable from any thread and from device code.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/philox.h"
#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

// Words below this are dropped.
inline std::uint32_t dropout_threshold(float rate) {
  CHECK(rate >= 0 && rate < 1, "a dropout rate is at least 0 and less than 1");
  return static_cast<std::uint32_t>(std::ldexp(static_cast<double>(rate), 32));
}

FETTLE_HOST_DEVICE inline PhiloxKey dropout_philox_key(const DropoutKey& key) {
  return {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)};
}

// The counter for elements 4 * block to 4 * block + 3.
FETTLE_HOST_DEVICE inline PhiloxCounter dropout_counter(const DropoutKey& key, std::int64_t index,
                                                        std::uint32_t block) {
  const auto high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(index) >> 32);
  return {block, static_cast<std::uint32_t>(index), *key.epoch, key.layer + (high << 16)};
}

}  // namespace fettle::kernels
