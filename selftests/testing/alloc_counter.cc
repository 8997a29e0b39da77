#include "selftests/testing/alloc_counter.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> g_cnt = 0;
std::atomic<int64_t> g_live = 0;
std::atomic<int64_t> g_peak = 0;

void* Allocate(size_t size) {
  void* place = std::malloc(size == 0 ? 1 : size);
  if (place == nullptr) throw std::bad_alloc();
  g_cnt.fetch_add(1, std::memory_order_relaxed);
  const int64_t bytes = static_cast<int64_t>(malloc_usable_size(place));
  const int64_t live = g_live.fetch_add(bytes) + bytes;
  int64_t peak = g_peak.load();
  while (live > peak && !g_peak.compare_exchange_weak(peak, live)) {
  }
  return place;
}

void Free(void* place) {
  if (place == nullptr) return;
  g_live.fetch_sub(static_cast<int64_t>(malloc_usable_size(place)));
  std::free(place);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* place) noexcept { Free(place); }
void operator delete[](void* place) noexcept { Free(place); }
void operator delete(void* place, size_t) noexcept { Free(place); }
void operator delete[](void* place, size_t) noexcept { Free(place); }

namespace ksweep::testing {

AllocStats GetAllocStats() {
  return {g_cnt.load(), g_live.load(), g_peak.load()};
}

void ResetAllocStats() {
  g_cnt = 0;
  g_live = 0;
  g_peak = 0;
}

}  // namespace ksweep::testing
