// Text as training data: its tokens in one row, cut into samples (ImageSet::of_text).
//
// A token is a byte of a text file, numbered in the order of the bytes that occur in it, or what a
// file of ids says: raw uint16 (as nanoGPT prepares them) or a list of integers by numpy.save.
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
  std::int64_t vocabulary = 0;  // tokens are below it
  std::string characters;       // the byte that each token is; empty where ids were given
};

// Errors name the file: unreadable; empty; a byte that does not occur in `known`, whose tokens are
// to be used.
Result<Text> read_characters(const std::string& path, DataCache& cache,
                             const Text* known = nullptr);

// `vocabulary`: tokens are below it; 0 = the largest one plus 1. Errors name the file: unreadable;
// empty; cut short; no integers; a token that is not below `vocabulary`.
Result<Text> read_tokens(const std::string& path, std::int64_t vocabulary, DataCache& cache);

// Samples of `context` tokens. Errors: a text shorter than one.
Result<ImageSet> cut_text(const Text& text, std::int64_t context, const std::string& path);

// "65 characters 0a2021..." (hexadecimal) or "50257 tokens": equal for texts whose tokens are the
// same.
std::string describe_vocabulary(const Text& text);

}  // namespace fettle::trainer
