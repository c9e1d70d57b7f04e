#include "base/directory.h"

#include <system_error>

namespace fettle {

std::vector<std::filesystem::directory_entry> entries_of(const std::string& directory) {
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code code;
  std::filesystem::directory_iterator at(directory, code);
  // A range-based for loop would throw the error of increment().
  for (const std::filesystem::directory_iterator end; !code && at != end; at.increment(code)) {
    entries.push_back(*at);
  }
  return entries;
}

}  // namespace fettle
