// A few of many, from everywhere.

#ifndef KSWEEP_SELFTESTS_BENCH_ATTACH_SPREAD_H_
#define KSWEEP_SELFTESTS_BENCH_ATTACH_SPREAD_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ksweep::bench {

// `cnt` of `all` at even distances; all of them if there are fewer.
template <typename T>
std::vector<T> EvenlySpread(const std::vector<T>& all, size_t cnt) {
  cnt = std::min(cnt, all.size());
  std::vector<T> some;
  some.reserve(cnt);
  for (size_t i = 0; i < cnt; ++i) some.push_back(all[i * all.size() / cnt]);
  return some;
}

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_ATTACH_SPREAD_H_
