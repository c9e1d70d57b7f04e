#include "kube/testing/fake_apply.h"

#include <algorithm>

namespace fettle::kube {
namespace {

const Leaves& unowned() {
  static const Leaves kPaths{{"apiVersion"},       {"kind"},
                             {"metadata", "name"}, {"metadata", "namespace"},
                             {"metadata", "uid"},  {"metadata", "resourceVersion"}};
  return kPaths;
}

void collect(const Json& value, LeafPath& path, Leaves& out) {
  if (value.is_null()) return;
  if (value.is_object() && !value.as_object().empty()) {
    for (const auto& [key, member] : value.as_object()) {
      path.push_back(key);
      collect(member, path, out);
      path.pop_back();
    }
    return;
  }
  if (!unowned().contains(path)) out.insert(path);
}

// Removes the leaf, and the objects that are then empty.
void erase_leaf(Json& value, const LeafPath& path, std::size_t at = 0) {
  Json* member = value.find(path[at]);
  if (member == nullptr) return;
  if (at + 1 < path.size()) {
    erase_leaf(*member, path, at + 1);
    if (!member->is_object() || !member->as_object().empty()) return;
  }
  value.erase(path[at]);
}

void set_leaf(Json& target, const Json& source, const LeafPath& path) {
  Json* to = &target;
  const Json* from = &source;
  for (const std::string& key : path) {
    from = from->find(key);
    if (!to->is_object()) *to = Json::object();
    if (to->find(key) == nullptr) to->set(key, Json());
    to = to->find(key);
  }
  *to = *from;
}

bool owned_by_another(const LeafPath& path, const std::string& manager,
                      const LeavesByManager& owners) {
  return std::ranges::any_of(owners, [&](const auto& owner) {
    return owner.first != manager && owner.second.contains(path);
  });
}

}  // namespace

Leaves leaves_of(const Json& object) {
  Leaves out;
  LeafPath path;
  if (object.is_object() && object.as_object().empty()) return out;
  collect(object, path, out);
  return out;
}

void apply_leaves(Json& target, const Json& object, const std::string& manager,
                  LeavesByManager& owners) {
  Leaves leaves = leaves_of(object);
  for (const LeafPath& path : owners[manager]) {
    if (leaves.contains(path) || owned_by_another(path, manager, owners)) continue;
    erase_leaf(target, path);
  }
  for (const LeafPath& path : leaves) set_leaf(target, object, path);
  owners[manager] = std::move(leaves);
}

}  // namespace fettle::kube
