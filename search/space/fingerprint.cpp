#include "search/space/fingerprint.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

namespace fettle::search {
namespace {

constexpr int kPlaces = 512;  // few results differ between variants, and only in the last bit

// FNV-1a over the bits of doubles.
class Sum {
 public:
  void add(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 8; ++i) {
      sum_ = (sum_ ^ ((bits >> (8 * i)) & 0xff)) * 16777619U;
    }
  }
  std::string text() const {
    char out[9];
    std::snprintf(out, sizeof(out), "%08x", sum_);
    return out;
  }

 private:
  std::uint32_t sum_ = 2166136261U;
};

// Hashes results of every library function that samplers call.
std::string probe() {
  Sum sum;
  for (int i = 1; i <= kPlaces; ++i) {
    const volatile double place = 0.013 * i;  // computed at run time, not by the compiler
    const double x = place;
    sum.add(std::exp(-x));
    sum.add(std::log(x));
    sum.add(std::log1p(x));
    sum.add(std::expm1(-x));
    sum.add(std::pow(x, 1.7));
    sum.add(std::sin(x));
    sum.add(std::cos(x));
    sum.add(std::tanh(x));
    sum.add(std::erf(x));
    sum.add(std::erfc(x));
    sum.add(std::lgamma(x));
    sum.add(std::cbrt(x));
  }
  return sum.text();
}

constexpr const char* machine() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "another machine";
#endif
}

std::string make() {
  std::string out = "fettle " FETTLE_VERSION ", ";
  out += machine();
#if defined(__GLIBC__)
  out += std::string(", glibc ") + ::gnu_get_libc_version();
#endif
  return out + ", libm " + probe();
}

}  // namespace

const std::string& fingerprint() {
  static const std::string kFingerprint = make();
  return kFingerprint;
}

}  // namespace fettle::search
