// FakeTarget: the path and query of a request to a FakeApiServer, taken apart. A value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "kube/resource.h"
#include "kube/testing/fake_objects.h"

namespace fettle::kube {

struct FakeTarget {
  std::string api_version;
  Collection collection;
  std::string subresource;
  ObjectKey key;
  std::map<std::string, std::string> query;

  // "" for what is not given.
  std::string param(const std::string& name) const;
  // 0 for what is not given.
  std::int64_t number_param(const std::string& name) const;
  // Whether the object is one that a list or watch of this target shows.
  bool covers(const Json& object) const;
};

// "/apis/batch/v1/namespaces/a/jobs/x/status?b=c"; nothing for another path.
std::optional<FakeTarget> parse_target(std::string_view target);

// The decimal number `text` begins with; 0 without one.
std::int64_t leading_number(std::string_view text);

}  // namespace fettle::kube
