// The elements of an array whose backend shares memory with the host, as CPU backends do.
#pragma once

#include <span>

#include "kernels/device_array.h"

namespace fettle::trainer {

template <class T>
std::span<T> elements(kernels::DeviceArray<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

template <class T>
std::span<const T> elements(const kernels::DeviceArray<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

}  // namespace fettle::trainer
