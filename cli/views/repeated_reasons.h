// RepeatedReasons: writes a long reason only once. For a later trial it becomes "as digits-0", so
// that sixty trials with one cause do not fill the terminal with one sentence.
//
// Reasons that differ in numbers only (a process id, a time) count as one. Not synchronised.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fettle::cli {

// Returns the reason with each number replaced by "#".
std::string without_numbers(std::string_view reason);

class RepeatedReasons {
 public:
  // Returns the `reason` of `trial`, shortened if it, or its end after a ": ", was written for
  // another trial. A `trial` of "" means a reason of the Study, to which no other reason refers.
  std::string shorten(const std::string& trial, const std::string& reason);

 private:
  std::map<std::string, std::string> trials_;  // the first trial of each reason
};

}  // namespace fettle::cli
