// Writes JSON for the API server; json_path.h reads it. Pure functions; usable from any thread.
#pragma once

#include <string_view>

#include "api/metadata.h"
#include "base/json.h"
#include "kube/resource.h"

namespace fettle::kube {

// metadata.ownerReferences of an object that is garbage-collected with its controller `owner`.
Json owner_references(const Resource& resource, const api::Metadata& owner);

// An object in the owner's namespace that is garbage-collected with it.
Json owned_object(const Resource& resource, std::string_view name, Json labels,
                  const Resource& owner_resource, const api::Metadata& owner, Json spec);

// The map `key` of `object`, made where there is none.
Json& map_of(Json& object, std::string_view key);

// Adds `item` to the list `key` of `object`.
void append(Json& object, std::string_view key, Json item);

}  // namespace fettle::kube
