// Text as training data: its tokens in one row, cut into samples (ImageSet::of_text).
//
// A token is a byte of a text file, numbered in the order of the bytes that occur in it, or an
// entry of a file of ids: raw uint16 (as nanoGPT prepares them) or a list of integers by
// numpy.save.
// Plain or gzipped. Pure functions but for reading files; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "trainer/data/bytes.h"
#include "trainer/data/cache.h"
#include "trainer/data/image_set.h"

namespace fettle::trainer {

struct Text {
  Bytes tokens;                 // std::uint16_t
  std::int64_t vocabulary = 0;  // all tokens are below it
  std::string characters;       // the byte of each token; empty if the file has ids
};

// Errors name the file: unreadable; empty; a byte that does not occur in `known`, whose tokens are
// used if it is given.
Result<Text> read_characters(const std::string& path, DataCache& cache,
                             const Text* known = nullptr);

// `vocabulary`: tokens are below it; 0 = the largest token plus 1. Errors name the file:
// unreadable; empty; truncated; no integers; a token that is not below `vocabulary`.
Result<Text> read_tokens(const std::string& path, std::int64_t vocabulary, DataCache& cache);

// Cuts samples of `context` tokens. Errors: the text is shorter than one sample.
Result<ImageSet> cut_text(const Text& text, std::int64_t context, const std::string& path);

// "65 characters 0a2021..." (hexadecimal) or "50257 tokens": equal for texts with the same tokens.
std::string describe_vocabulary(const Text& text);

}  // namespace fettle::trainer
