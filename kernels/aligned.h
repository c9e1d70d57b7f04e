// AlignedArray: a fixed-size array that starts on a cache line, as every Buffer of backend.h must.
//
// Invariant: data() is 64-byte aligned, or nullptr when empty. Elements start as zeros.
// Not synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace fettle::kernels {

// Allocates at least 64-byte aligned memory; nullptr for 0 bytes. Large blocks ask for huge pages,
// because the activations of a batch are tens of megabytes, read and written from end to end.
// Aborts if memory runs out.
void* allocate_aligned(std::int64_t bytes);
void free_aligned(void* pointer);

template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>, "elements are set to zero and never destroyed");

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::int64_t size)
      : data_(static_cast<T*>(allocate_aligned(size * std::int64_t{sizeof(T)}))), size_(size) {
    std::fill_n(data_.get(), size, T{});
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::int64_t i) { return data_.get()[i]; }
  const T& operator[](std::int64_t i) const { return data_.get()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  struct Free {
    void operator()(T* pointer) const { free_aligned(pointer); }
  };

  std::unique_ptr<T, Free> data_;
  std::int64_t size_ = 0;
};

}  // namespace fettle::kernels
