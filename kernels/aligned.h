// AlignedArray: a fixed-size array that starts on a cache line, as every Buffer of backend.h must.
//
// Invariant: data() is 64-byte aligned, or nullptr when empty. Elements start as zeros.
// Not synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace fettle::kernels {

template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>, "elements are set to zero and never destroyed");

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::int64_t size)
      : data_(size == 0 ? nullptr
                        : static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T),
                                                         kAlignment))),
        size_(size) {
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
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* pointer) const { ::operator delete(pointer, kAlignment); }
  };

  std::unique_ptr<T, Free> data_;
  std::int64_t size_ = 0;
};

}  // namespace fettle::kernels
