// FieldError: a fault in one field of a document, described for people.
#pragma once

#include <string>
#include <vector>

namespace fettle::api {

struct FieldError {
  std::string path;     // of the whole document, "spec.parameters[2].min"; "" = the document
  std::string message;  // what was found, what was expected, the remedy
  bool operator==(const FieldError&) const = default;
};

// "path: message", one a line.
std::string to_string(const std::vector<FieldError>& errors);

}  // namespace fettle::api
