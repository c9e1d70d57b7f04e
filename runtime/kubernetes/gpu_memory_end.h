// Whether a container ended because it had too little memory of its GPU, by its last words.
//
// The built-in trainer says how much it needs, before it begins. Others die in the middle, in the
// words of their framework; and what stands between them and the card (HAMi's library) turns the
// driver's error into one that the CUDA runtime does not know. Pure; usable from any thread.
#pragma once

#include <optional>
#include <string_view>

namespace fettle::kubernetes {

// How many bytes it needs at least, 0 where it does not say; nothing where it ended otherwise.
std::optional<double> gpu_memory_short(std::string_view last_words);

}  // namespace fettle::kubernetes
