// PlayedKubelet: gives each new pod of a FakeApiServer the same status, from a thread of its own,
// until it is destroyed.
#pragma once

#include <string_view>
#include <thread>

#include "kube/testing/fake_api_server.h"

namespace fettle::cli {

// The status of a pod whose container `checkpoints` runs.
inline constexpr std::string_view kRunningPod = R"({"phase": "Running", "containerStatuses": [
    {"name": "checkpoints", "state": {"running": {}}}]})";

class PlayedKubelet {
 public:
  // `status`: JSON. `server` outlives the object.
  PlayedKubelet(kube::FakeApiServer& server, std::string_view status);

 private:
  std::jthread thread_;
};

}  // namespace fettle::cli
