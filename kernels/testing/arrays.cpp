#include "kernels/testing/arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "base/philox.h"
#include "base/test_paths.h"
#include "kernels/backends/cuda/backend.h"
#include "kernels/cast/loops.h"

namespace fettle::kernels::testing {

Array::Array(DataType type, std::int64_t count)
    : type_(type), count_(count), bytes_(count * size_of(type)) {}

Array::Array(DataType type, const Floats& values)
    : Array(type, static_cast<std::int64_t>(values.size())) {
  if (type == DataType::kFloat32) {
    std::copy(values.begin(), values.end(), static_cast<float*>(data()));
  } else {
    round_all(type, count_, values.data(), static_cast<std::uint16_t*>(data()));
  }
}

Floats Array::floats() const {
  Floats values(static_cast<std::size_t>(count_));
  if (type_ == DataType::kFloat32) {
    std::copy_n(static_cast<const float*>(data()), count_, values.begin());
  } else {
    widen_all(type_, count_, static_cast<const std::uint16_t*>(data()), values.data());
  }
  return values;
}

Floats random_floats(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = (static_cast<float>(random.below(129)) - 64) / 64;
  return values;
}

void expect_close(const Floats& found, const Floats& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(double{found[i]} - expected[i]);
    ASSERT_LE(error, tolerance * largest)
        << what << " [" << i << "]: found " << found[i] << ", expected " << expected[i];
  }
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names = {"reference"};
  if (make_backend("onednn", 1).ok()) names.push_back("onednn");
  names.push_back("cuda");
  return names;
}

Backend* backend(std::string_view name) {
  // Never destroyed: libfettle_cuda.so and cuDNN are loaded after this map is created, so they
  // would be unloaded before it is destroyed.
  using Backends = std::map<std::string, std::unique_ptr<Backend>, std::less<>>;
  static Backends& made = *new Backends;
  const auto found = made.find(name);
  if (found != made.end()) return found->second.get();
  auto fresh = name == "cuda" ? cuda_backend() : make_backend(name, 1);
  return made.emplace(name, std::move(fresh).value()).first->second.get();
}

std::string backend_name_of(const ::testing::TestParamInfo<std::string>& instance) {
  return instance.param;
}

Json::Array golden_cases(const std::string& name) {
  const std::string path = source_path("kernels/testdata/" + name + ".json");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  Result<Json> cases = parse_json(text.str());
  CHECK(cases.ok() && cases.value().is_array(), path);
  return cases.value().as_array();
}

Floats floats_of(const Json& object, std::string_view key) {
  const Json* list = object.find(key);
  CHECK(list != nullptr, std::string(key));
  Floats values;
  for (const Json& value : list->as_array())
    values.push_back(static_cast<float>(value.as_double()));
  return values;
}

std::int64_t integer_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  CHECK(value != nullptr, std::string(key));
  return value->as_integer();
}

float number_of(const Json& object, std::string_view key, float otherwise) {
  const Json* value = object.find(key);
  return value == nullptr ? otherwise : static_cast<float>(value->as_double());
}

bool boolean_of(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->as_boolean();
}

}  // namespace fettle::kernels::testing
