// RepeatedReasons: writes a long reason once. The same one of a later trial becomes "as digits-0",
// so that sixty trials with one cause do not fill the terminal with one sentence.
//
// Reasons that differ in numbers only (a process id, a time) count as one. Not synchronised.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fettle::cli {

// The reason with each number replaced by "#".
std::string without_numbers(std::string_view reason);

class RepeatedReasons {
 public:
  // `reason` of `trial`, or what remains of it where it, or its end after a ": ", was written for
  // another trial. "" as the trial: a reason of the Study, which none is referred to.
  std::string shorten(const std::string& trial, const std::string& reason);

 private:
  std::map<std::string, std::string> trials_;  // the first trial of each reason
};

}  // namespace fettle::cli
