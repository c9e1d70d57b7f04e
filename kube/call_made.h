// CallMade: one answered call to the API server, for metrics. A value.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace fettle::kube {

struct CallMade {
  std::string_view verb;  // get list watch create update patch apply delete log
  std::string resource;   // plural, with the subresource: "trials/status"
  int code = 0;           // 0 when there was no answer
  std::chrono::microseconds took{};
};

}  // namespace fettle::kube
