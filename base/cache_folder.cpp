#include "base/cache_folder.h"

#include <cstdlib>

namespace fettle {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string cache_folder(const char* variable, const std::string& name) {
  std::string chosen = environment(variable);
  if (chosen == "off") return "";
  if (!chosen.empty()) return chosen;
  const std::string caches = environment("XDG_CACHE_HOME");
  if (!caches.empty()) return caches + "/fettle/" + name;
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/fettle/" + name;
}

}  // namespace fettle
