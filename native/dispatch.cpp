#include <cstdlib>
#include <cstring>

#include "kernels.hpp"

#if defined(SCANSION_HAVE_AVX2) && defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace scansion {
namespace {

#if defined(SCANSION_HAVE_AVX2)
bool cpu_has_avx2() {
#if defined(_MSC_VER)
  int info[4];
  __cpuid(info, 0);
  if (info[0] < 7) return false;
  __cpuidex(info, 1, 0);
  const bool fma = info[2] & (1 << 12), saves = info[2] & (1 << 27);
  if (!fma || !saves || (_xgetbv(0) & 6) != 6) return false;
  __cpuidex(info, 7, 0);
  return info[1] & (1 << 5);
#else
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
}
#endif

const Kernels& choose() {
#if defined(SCANSION_HAVE_AVX2)
  const char* wish = std::getenv("SCANSION_ISA");
  if (cpu_has_avx2() && !(wish && std::strcmp(wish, "baseline") == 0)) return kernels_avx2();
#endif
  return kernels_baseline();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace scansion
