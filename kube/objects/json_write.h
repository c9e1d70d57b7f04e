// Writes JSON for the API server; json_path.h reads it. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/meta/metadata.h"
#include "base/json.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

// Parses a part of a manifest, as in the documentation of Kubernetes. It must be JSON.
Json manifest(std::string_view json);

// Returns metadata.ownerReferences of an object that is garbage-collected with its controller
// `owner`.
Json owner_references(const Resource& resource, const api::Metadata& owner);

// Returns an object in the owner's namespace that is garbage-collected with it.
Json owned_object(const Resource& resource, std::string_view name, Json labels,
                  const Resource& owner_resource, const api::Metadata& owner, Json spec);

// Formats Unix milliseconds as a MicroTime, RFC 3339 with exactly six digits of a second:
// "2026-01-31T12:00:00.250000Z".
std::string format_micro_time(std::int64_t unix_ms);

// Returns the map `key` of `object`, and creates it if it is absent.
Json& map_of(Json& object, std::string_view key);

// Adds `item` to the list `key` of `object`.
void append(Json& object, std::string_view key, Json item);

}  // namespace fettle::kube
