#include "trainer/step/implementations.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fettle::trainer {

namespace {

struct Group {
  kernels::Implementation pass;
  std::vector<std::string> layers;
};

// Ignores the operation, which differs by the layer's shape.
bool same(const kernels::Implementation& a, const kernels::Implementation& b) {
  return a.pass == b.pass && a.by == b.by && a.fused == b.fused && a.reason == b.reason;
}

}  // namespace

Json to_json(const std::vector<LayerImplementation>& implementations) {
  std::vector<Group> groups;
  for (const LayerImplementation& one : implementations) {
    const auto found = std::ranges::find_if(
        groups, [&](const Group& group) { return same(group.pass, one.pass); });
    if (found == groups.end()) {
      groups.push_back({one.pass, {one.layer}});
    } else {
      found->layers.push_back(one.layer);
    }
  }
  Json all = Json::array();
  for (const Group& group : groups) {
    Json json = Json::object({{"pass", group.pass.pass}, {"by", group.pass.by}});
    if (!group.pass.fused.empty()) json.set("fused", group.pass.fused);
    if (!group.pass.reason.empty()) json.set("reason", group.pass.reason);
    Json layers = Json::array();
    for (const std::string& layer : group.layers) layers.push_back(layer);
    json.set("layers", std::move(layers));
    all.push_back(std::move(json));
  }
  return all;
}

std::int64_t fallbacks(const std::vector<LayerImplementation>& implementations) {
  return std::ranges::count_if(
      implementations, [](const LayerImplementation& one) { return !one.pass.reason.empty(); });
}

}  // namespace fettle::trainer
