// FakeTarget: the parsed path and query of a request to a FakeApiServer. A value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "kube/objects/resource.h"
#include "kube/testing/fake_objects.h"

namespace fettle::kube {

struct FakeTarget {
  std::string api_version;
  Collection collection;
  std::string subresource;
  ObjectKey key;
  std::map<std::string, std::string> query;

  // "" for an absent parameter.
  std::string param(const std::string& name) const;
  // 0 for an absent parameter.
  std::int64_t number_param(const std::string& name) const;
  // Whether a list or watch of this target includes the object.
  bool covers(const Json& object) const;
};

// Parses "/apis/batch/v1/namespaces/a/jobs/x/status?b=c"; absent for another path.
std::optional<FakeTarget> parse_target(std::string_view target);

// Returns the decimal number with which `text` begins; 0 without one.
std::int64_t leading_number(std::string_view text);

}  // namespace fettle::kube
