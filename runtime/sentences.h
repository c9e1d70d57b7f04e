// Joins findings into messages for people.
#pragma once

#include <string>

namespace fettle::runtime {

// "TEXT; SENTENCE", or whichever of the two is not empty.
inline void add_sentence(std::string& text, const std::string& sentence) {
  if (!text.empty() && !sentence.empty()) text += "; ";
  text += sentence;
}

}  // namespace fettle::runtime
