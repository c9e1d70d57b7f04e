// The numbers of the worker protocol (docs/worker-protocol.md) on which its two sides agree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fettle::api {

inline constexpr std::int64_t kWorkerProtocol = 1;            // the version that we speak
inline constexpr std::size_t kLongestWorkerFrame = 4'096;     // bytes
inline constexpr std::size_t kLongestWorkerRun = 256;         // bytes of a run's name
inline constexpr std::size_t kLongestAssignment = 256 << 10;  // bytes of its line

}  // namespace fettle::api
