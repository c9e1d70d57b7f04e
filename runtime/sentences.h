// Messages for people that are put together from several findings.
#pragma once

#include <string>

namespace fettle::runtime {

// "TEXT; SENTENCE", or the one of them that is not empty.
inline void add_sentence(std::string& text, const std::string& sentence) {
  if (!text.empty() && !sentence.empty()) text += "; ";
  text += sentence;
}

}  // namespace fettle::runtime
