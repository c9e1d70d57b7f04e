// FETTLE_FOR_EACH_PROCESSOR before a function compiles it for AVX-512, for AVX2 and for any x86-64;
// the dynamic loader picks one at start-up. Functions that it inlines are compiled along. A
// function template has internal linkage, since symbols that the loader resolves cannot be merged.
// Used by the fast backend only: the reference runs the same instructions everywhere.
#pragma once

#if defined(__SANITIZE_THREAD__) || defined(__clang__)
// The loader picks a version before the thread sanitizer, which intercepts every call, is
// initialised. Clang, which reads the sources for clang-tidy, lacks such templates.
#define FETTLE_FOR_EACH_PROCESSOR
#else
#define FETTLE_FOR_EACH_PROCESSOR \
  [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#endif
