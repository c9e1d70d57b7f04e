#include "trainer/collective.h"

#include <cstring>

namespace fettle::trainer {

Status broadcast_bytes(Collective& collective, std::string& bytes) {
  std::uint64_t size = bytes.size();
  FETTLE_TRY(collective.broadcast(std::as_writable_bytes(std::span(&size, 1))));
  bytes.resize(size);
  return collective.broadcast(std::as_writable_bytes(std::span(bytes)));
}

}  // namespace fettle::trainer
