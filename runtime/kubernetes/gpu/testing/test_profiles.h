// The GPU profiles of gpu/testdata/profiles.yaml, for tests.
#pragma once

#include <string>
#include <vector>

#include "api/gpu/gpu_profile.h"
#include "base/json.h"

namespace fettle::kubernetes {

// A YAML file of gpu/testdata. Aborts if it cannot be read.
Json test_document(const std::string& name);

// All profiles, or the profiles of these names in this order. Aborts on profiles that are wrong.
std::vector<api::GpuProfile> test_profiles();
std::vector<api::GpuProfile> test_profiles(const std::vector<std::string>& names);
std::vector<api::GpuProfile> listed_profiles(const Json& names);

}  // namespace fettle::kubernetes
