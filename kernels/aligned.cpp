#include "kernels/aligned.h"

#include <sys/mman.h>

#include <cstdlib>

#include "base/check.h"

namespace fettle::kernels {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

void* allocate_aligned(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const bool large = size >= 2 * kHugePage;  // rounding up wastes less than a third of the pages
  const std::size_t alignment = large ? kHugePage : kCacheLine;
  void* pointer = std::aligned_alloc(alignment, round_up(size, alignment));
  CHECK(pointer != nullptr, "out of memory");
  // Only a hint: without huge pages everything works, more slowly.
  if (large) (void)madvise(pointer, round_up(size, kHugePage), MADV_HUGEPAGE);
  return pointer;
}

void free_aligned(void* pointer) { std::free(pointer); }

}  // namespace fettle::kernels
