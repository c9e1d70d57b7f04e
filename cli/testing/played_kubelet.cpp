#include "cli/testing/played_kubelet.h"

#include <chrono>
#include <utility>

#include "base/json.h"
#include "kube/objects/json_path.h"

namespace fettle::cli {

PlayedKubelet::PlayedKubelet(kube::FakeApiServer& server, std::string_view status) {
  Json patch = Json::object({{"status", *parse_json(status)}});
  thread_ = std::jthread([&server, patch = std::move(patch)](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const Json& pod : server.list(kube::kPods)) {
        if (!kube::text_at(pod, {"status", "phase"}).empty()) continue;
        const std::string ns = kube::text_at(pod, {"metadata", "namespace"});
        server.merge(kube::kPods, {ns, kube::text_at(pod, {"metadata", "name"})}, patch);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

}  // namespace fettle::cli
