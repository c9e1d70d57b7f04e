#include "runtime/kubernetes/gpu/testing/test_profiles.h"

#include <algorithm>

#include "api/yaml/yaml_reader.h"
#include "base/check.h"
#include "base/file.h"
#include "base/test_paths.h"

namespace fettle::kubernetes {

Json test_document(const std::string& name) {
  const Result<std::string> text =
      read_file(source_path("runtime/kubernetes/gpu/testdata/" + name));
  CHECK(text.ok(), text.error().message);
  const api::ReadYaml yaml = api::read_yaml(*text);
  CHECK(yaml.errors.empty(), yaml.errors.front().message);
  return yaml.documents.at(0).value();
}

std::vector<api::GpuProfile> test_profiles() {
  const auto profiles = api::read_gpu_profiles(test_document("profiles.yaml"));
  CHECK(profiles.ok(), profiles.error().message);
  return *profiles;
}

std::vector<api::GpuProfile> test_profiles(const std::vector<std::string>& names) {
  const std::vector<api::GpuProfile> all = test_profiles();
  std::vector<api::GpuProfile> out;
  for (const std::string& name : names) {
    const auto found =
        std::ranges::find_if(all, [&](const auto& profile) { return profile.name == name; });
    CHECK(found != all.end(), name);
    out.push_back(*found);
  }
  return out;
}

std::vector<api::GpuProfile> listed_profiles(const Json& names) {
  std::vector<std::string> texts;
  for (const Json& name : names.as_array()) texts.push_back(name.as_string());
  return test_profiles(texts);
}

}  // namespace fettle::kubernetes
