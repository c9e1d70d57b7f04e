#include "kube/objects/json_write.h"

#include <utility>

#include "api/fields/timestamp.h"
#include "kube/objects/json_path.h"

namespace fettle::kube {

Json manifest(std::string_view json) { return parse_json(json).value(); }

Json owner_references(const Resource& resource, const api::Metadata& owner) {
  return Json(Json::Array{Json::object({{"apiVersion", api_version(resource)},
                                        {"kind", resource.kind},
                                        {"name", owner.name},
                                        {"uid", owner.uid},
                                        {"controller", true},
                                        {"blockOwnerDeletion", true}})});
}

Json owned_object(const Resource& resource, std::string_view name, Json labels,
                  const Resource& owner_resource, const api::Metadata& owner, Json spec) {
  Json metadata = Json::object({{"name", name},
                                {"namespace", owner.ns},
                                {"labels", std::move(labels)},
                                {"ownerReferences", owner_references(owner_resource, owner)}});
  return Json::object({{"apiVersion", api_version(resource)},
                       {"kind", resource.kind},
                       {"metadata", std::move(metadata)},
                       {"spec", std::move(spec)}});
}

std::string format_micro_time(std::int64_t unix_ms) {
  std::string out = api::format_timestamp(unix_ms);
  out.pop_back();  // the Z
  const std::size_t dot = out.find('.');
  if (dot == std::string::npos) return out + ".000000Z";
  out.resize(dot + 7, '0');
  return out + 'Z';
}

Json& map_of(Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  if (found == nullptr || !found->is_object()) object.set(key, Json::object());
  return *object.find(key);
}

void append(Json& object, std::string_view key, Json item) {
  Json list = array_at(object, {key});
  list.push_back(std::move(item));
  object.set(key, std::move(list));
}

}  // namespace fettle::kube
