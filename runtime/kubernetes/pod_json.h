// Small changes to the JSON of a pod. Pure functions; usable from any thread.
#pragma once

#include <string_view>
#include <utility>

#include "base/json.h"

namespace fettle::kubernetes {

// The list `key` of `object`, empty where there is none.
inline Json list_of(const Json& object, std::string_view key) {
  const Json* const list = object.find(key);
  return list != nullptr && list->is_array() ? *list : Json::array();
}

// The map `key` of `object`, made where there is none.
inline Json& map_of(Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  if (found == nullptr || !found->is_object()) object.set(key, Json::object());
  return *object.find(key);
}

// Adds `item` to the list `key` of `object`.
inline void append(Json& object, std::string_view key, Json item) {
  Json list = list_of(object, key);
  list.push_back(std::move(item));
  object.set(key, std::move(list));
}

// The text of the member `key` of `object`; "" where there is none.
inline std::string_view text_of(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  return found != nullptr && found->is_string() ? std::string_view(found->as_string()) : "";
}

}  // namespace fettle::kubernetes
