// DeviceArray: a fixed-size array in the memory of a backend.
//
// Elements start as zeros. Must not outlive its backend. data() is for the backend's operations;
// the host reads elements with download(), or directly if the backend shares its memory with the
// host. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

template <class T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>, "elements are copied as bytes");

 public:
  DeviceArray() = default;  // empty
  // Errors: not enough memory.
  static Result<DeviceArray> create(Backend& backend, std::int64_t size) {
    DeviceArray made;
    if (size == 0) return made;
    FETTLE_ASSIGN(made.memory_, backend.allocate(size * std::int64_t{sizeof(T)}));
    made.backend_ = &backend;
    made.size_ = size;
    return made;
  }

  T* data() { return memory_ ? static_cast<T*>(memory_->data()) : nullptr; }
  const T* data() const { return memory_ ? static_cast<const T*>(memory_->data()) : nullptr; }
  std::int64_t size() const { return size_; }
  std::int64_t bytes() const { return size_ * std::int64_t{sizeof(T)}; }
  bool empty() const { return size_ == 0; }

  // Waits for all work enqueued before.
  std::vector<T> download() const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    if (!empty()) backend_->download(data(), values.data(), bytes());
    return values;
  }
  // `values`: host memory, at most size() of them. Uploads in pieces, because a backend keeps
  // staging memory as large as the largest upload.
  void upload(std::span<const T> values) {
    CHECK(std::ssize(values) <= size_, "more values than the array has elements");
    for (std::int64_t begin = 0; begin < std::ssize(values); begin += kUploadedAtOnce) {
      const std::int64_t count = std::min(kUploadedAtOnce, std::ssize(values) - begin);
      backend_->upload(values.data() + begin, data() + begin, count * std::int64_t{sizeof(T)});
    }
  }
  void set_zero() {
    if (!empty()) backend_->set_zero(data(), bytes());
  }

 private:
  static constexpr std::int64_t kUploadedAtOnce = (std::int64_t{4} << 20) / sizeof(T);

  Backend* backend_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::int64_t size_ = 0;
};

}  // namespace fettle::kernels
