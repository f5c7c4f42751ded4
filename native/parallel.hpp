// Work over sequences on several threads. Who computes what never changes a result: outputs are separate, and
// sums go through a fixed number of chunks that are added up in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace scansion {

// Scratch memory that a thread grows and reuses; contents are not kept.
class Workspace {
 public:
  double* take(int64_t doubles) {
    if (doubles > size_) {
      block_.reset(new double[static_cast<size_t>(doubles)]);
      size_ = doubles;
    }
    return block_.get();
  }

 private:
  std::unique_ptr<double[]> block_;
  int64_t size_ = 0;
};

// body(i, worker) for i = 0..count-1; worker < number of threads. The first exception is thrown again here. Where the
// system gives fewer threads than are asked for, these do the work.
template <class Body>
void parallel_for(int64_t count, int64_t threads, const Body& body) {
  threads = std::max<int64_t>(1, std::min(threads, count));
  if (threads == 1) {
    for (int64_t i = 0; i < count; ++i) body(i, int64_t{0});
    return;
  }
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&](int64_t worker) {
    // what the run-time library keeps for exceptions in each thread is made here, not where memory has run out
    [[maybe_unused]] const volatile int none = std::uncaught_exceptions();
    try {
      for (int64_t i; (i = next.fetch_add(1)) < count;) body(i, worker);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
      next.store(count);
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(threads - 1));
  try {
    for (int64_t worker = 1; worker < threads; ++worker) pool.emplace_back(work, worker);
  } catch (const std::exception&) {  // no more threads, or no memory for them
  }
  work(0);
  for (std::thread& thread : pool) thread.join();
  if (error) std::rethrow_exception(error);
}

// 0..count-1 cut into the same chunks whatever the number of threads.
struct Chunks {
  int64_t count, chunks;
  explicit Chunks(int64_t n, int64_t most = 32) : count(n), chunks(std::max<int64_t>(1, std::min(n, most))) {}
  int64_t begin(int64_t chunk) const { return count * chunk / chunks; }
  int64_t end(int64_t chunk) const { return count * (chunk + 1) / chunks; }
};

}  // namespace scansion
