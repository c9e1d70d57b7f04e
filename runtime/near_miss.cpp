#include "runtime/near_miss.h"

#include "api/fields/field.h"

namespace fettle::runtime {
namespace {

constexpr std::size_t kLongestQuote = 120;

constexpr const char* kNothing =
    "nothing was printed; a program that prints may hold it back until its buffer is full: flush "
    "each line, in Python print(json.dumps({...}), flush=True)";

std::string quoted(std::string_view line) {
  std::string text = api::clean_text(line, kLongestQuote);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  const std::string more = line.size() > kLongestQuote ? " ..." : "";
  return "\"" + text + more + "\"";
}

}  // namespace

void NearMiss::see(Rank rank, std::string_view line, const std::string& why) {
  if (rank <= rank_) return;
  rank_ = rank;
  line_ = quoted(line);
  why_ = why;
}

NearMiss NearMiss::joined(const NearMiss& other) const {
  NearMiss both = other.rank_ > rank_ ? other : *this;
  both.lines_ = lines_ + other.lines_;
  both.bytes_ = bytes_ + other.bytes_;
  return both;
}

std::string NearMiss::sentence(const std::string& expected) const {
  if (bytes_ == 0) return kNothing;
  if (rank_ != Rank::kNone) return "the line that came nearest, " + line_ + ", " + why_;
  if (lines_ == 0) return "no whole line was printed";
  return "none of its " + std::to_string(lines_) + (lines_ == 1 ? " line" : " lines") + " is " +
         expected;
}

}  // namespace fettle::runtime
