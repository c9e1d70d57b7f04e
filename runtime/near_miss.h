// NearMiss: the line that came nearest to a report in the output of a program that reported
// nothing, and the reason why it is none. For people; pure; not synchronised. Holds one short line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fettle::runtime {

class NearMiss {
 public:
  // How near a line came, ascending.
  enum class Rank { kNone, kNamed, kInside, kBroken, kOther, kNoNumber };

  void count(std::int64_t bytes) { bytes_ += bytes; }
  void count_line() { ++lines_; }
  // `why` continues a sentence about the line: "is no JSON". The first line of a rank stays.
  void see(Rank rank, std::string_view line, const std::string& why);

  // Joins two outputs of one program.
  NearMiss joined(const NearMiss& other) const;
  // For a person who misses a report; `expected` describes a correct line, as in "a JSON object".
  std::string sentence(const std::string& expected) const;

 private:
  Rank rank_ = Rank::kNone;
  std::string line_;
  std::string why_;
  std::int64_t lines_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace fettle::runtime
