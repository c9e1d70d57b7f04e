// FakeSelector: selectors that FakeApiServer supports. Pure functions.
#pragma once

#include <string>

#include "base/json.h"

namespace fettle::kube {

// "" matches everything.
struct FakeSelector {
  std::string labels;  // "a=b,c!=d,e,!f"; sets ("e in (f, g)") are not supported
  std::string fields;  // "metadata.name=x,spec.study!=y"
};

bool matches(const Json& object, const FakeSelector& selector);

}  // namespace fettle::kube
