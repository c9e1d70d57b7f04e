#include "tests/search/families/options.h"

#include <iostream>
#include <sstream>

namespace fettle::search::families {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(part);
  return out;
}

}  // namespace

bool read_options(const std::vector<std::string>& arguments, Options& options) {
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    const std::string& value = arguments[i + 1];
    if (name == "--algorithms") {
      options.algorithms = split(value);
    } else if (name == "--kinds") {
      options.kinds = split(value);
    } else if (name == "--laws" && !options.laws.empty()) {
      options.laws = split(value);
    } else if (name == "--tasks") {
      options.tasks = std::stoull(value);
    } else if (name == "--first") {
      options.first = std::stoull(value);
    } else if (name == "--pending") {
      options.pending = std::stoll(value);
    } else if (name == "--revision") {
      options.revision = std::stoll(value);
    } else {
      std::cerr << "there is no option " << name << "\n";
      return false;
    }
  }
  return true;
}

}  // namespace fettle::search::families
