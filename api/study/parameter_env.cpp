#include "api/study/parameter_env.h"

namespace fettle::api {

std::string parameter_env_name(std::string_view parameter) {
  std::string out = "FETTLE_PARAM_";
  for (const char c : parameter) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += lower ? static_cast<char>(c - 'a' + 'A') : kept ? c : '_';
  }
  return out;
}

std::string parameter_env_value(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

}  // namespace fettle::api
