// CallMade: one answered call to the API server, for metrics. A value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace fettle::kube {

struct CallMade {
  std::string_view verb;  // get list watch create update patch apply delete log
  std::string resource;   // plural, with the subresource: "trials/status"
  int code = 0;           // 0 if there was no answer
  std::chrono::microseconds took{};
  std::int64_t date_ms = 0;  // the server's time, from its Date header; 0 = unknown
};

}  // namespace fettle::kube
