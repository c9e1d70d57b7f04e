// Reads the API server's JSON leniently: a missing value, or one of another type, is empty.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "api/meta/metadata.h"
#include "base/json.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

using JsonPath = std::initializer_list<std::string_view>;

// Returns the value at the end of `path` through objects; nullptr if absent.
const Json* value_at(const Json& object, JsonPath path);
// "" if it is not a string.
std::string text_at(const Json& object, JsonPath path);
std::int64_t integer_at(const Json& object, JsonPath path, std::int64_t otherwise = 0);
bool boolean_at(const Json& object, JsonPath path, bool otherwise = false);
// Unix milliseconds; 0 if it is not an RFC 3339 time.
std::int64_t time_at(const Json& object, JsonPath path);
// Returns the members of an array; an empty array if it is not one.
const Json::Array& array_at(const Json& object, JsonPath path);

// metadata.namespace and metadata.name.
ObjectKey key_of(const Json& object);
api::Metadata read_metadata(const Json& object);

// Sets kind and apiVersion, which items of lists lack.
void fill_in_kind(Json& object, const Resource& resource);

}  // namespace fettle::kube
