// Copies of values in a backend's memory, as operations need them.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kernels/device_array.h"

namespace fettle::kernels::testing {

template <class T>
DeviceArray<T> on_device(Backend& backend, const std::vector<T>& values) {
  Result<DeviceArray<T>> made = DeviceArray<T>::create(backend, std::ssize(values));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  made->upload(values);
  return std::move(made).value();
}

// Copies a single value.
template <class T>
DeviceArray<T> on_device(Backend& backend, const T& value) {
  return on_device(backend, std::vector<T>{value});
}
template <class T>
T value_of(const DeviceArray<T>& array) {
  return array.download().front();
}

}  // namespace fettle::kernels::testing
