#include "kube/objects/json_path.h"

#include "api/fields/timestamp.h"

namespace fettle::kube {
namespace {

std::map<std::string, std::string> texts_at(const Json& object, JsonPath path) {
  std::map<std::string, std::string> out;
  const Json* value = value_at(object, path);
  if (value == nullptr || !value->is_object()) return out;
  for (const auto& [key, text] : value->as_object()) {
    if (text.is_string()) out.emplace(key, text.as_string());
  }
  return out;
}

}  // namespace

const Json* value_at(const Json& object, JsonPath path) {
  const Json* value = &object;
  for (const std::string_view key : path) {
    value = value->find(key);
    if (value == nullptr) return nullptr;
  }
  return value;
}

std::string text_at(const Json& object, JsonPath path) {
  const Json* value = value_at(object, path);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

std::int64_t integer_at(const Json& object, JsonPath path, std::int64_t otherwise) {
  const Json* value = value_at(object, path);
  return value != nullptr && value->is_integer() ? value->as_integer() : otherwise;
}

bool boolean_at(const Json& object, JsonPath path, bool otherwise) {
  const Json* value = value_at(object, path);
  return value != nullptr && value->is_boolean() ? value->as_boolean() : otherwise;
}

std::int64_t time_at(const Json& object, JsonPath path) {
  return api::parse_timestamp(text_at(object, path)).value_or(0);
}

const Json::Array& array_at(const Json& object, JsonPath path) {
  static const Json::Array kNone;
  const Json* value = value_at(object, path);
  return value != nullptr && value->is_array() ? value->as_array() : kNone;
}

ObjectKey key_of(const Json& object) {
  return {text_at(object, {"metadata", "namespace"}), text_at(object, {"metadata", "name"})};
}

void fill_in_kind(Json& object, const Resource& resource) {
  if (!object.is_object()) return;
  object.set("kind", resource.kind);
  object.set("apiVersion", api_version(resource));
}

api::Metadata read_metadata(const Json& object) {
  api::Metadata out;
  out.name = text_at(object, {"metadata", "name"});
  out.ns = text_at(object, {"metadata", "namespace"});
  out.uid = text_at(object, {"metadata", "uid"});
  out.resource_version = text_at(object, {"metadata", "resourceVersion"});
  out.generation = integer_at(object, {"metadata", "generation"});
  out.created_ms = time_at(object, {"metadata", "creationTimestamp"});
  out.deleted_ms = time_at(object, {"metadata", "deletionTimestamp"});
  out.labels = texts_at(object, {"metadata", "labels"});
  out.annotations = texts_at(object, {"metadata", "annotations"});
  return out;
}

}  // namespace fettle::kube
