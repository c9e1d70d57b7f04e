#include "trainer/parallel/collective.h"

#include <algorithm>

namespace fettle::trainer {

Status Collective::all_gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  constexpr float kNothing = -0.0F;  // the neutral element: +0 would turn -0 into +0
  const auto mine = static_cast<std::size_t>(rank());
  std::fill(values.begin(), values.begin() + bounds[mine], kNothing);
  std::fill(values.begin() + bounds[mine + 1], values.end(), kNothing);
  return sum(values);
}

Status broadcast_bytes(Collective& collective, std::string& bytes) {
  std::uint64_t size = bytes.size();
  FETTLE_TRY(collective.broadcast(std::as_writable_bytes(std::span(&size, 1))));
  bytes.resize(size);
  return collective.broadcast(std::as_writable_bytes(std::span(bytes)));
}

}  // namespace fettle::trainer
