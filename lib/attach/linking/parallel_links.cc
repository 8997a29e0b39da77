#include "lib/attach/linking/parallel_links.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ksweep {
namespace {

// As many as there may be, up to `cnt`.
std::vector<std::thread> StartThreads(size_t cnt,
                                      const std::function<void()>& work) {
  std::vector<std::thread> threads;
  try {
    for (size_t i = 0; i < cnt; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // RLIMIT_NPROC: those that there are do it all.
  }
  return threads;
}

}  // namespace

ParallelLinks::ParallelLinks(size_t cnt, uint32_t threads,
                             std::function<absl::StatusOr<Link>(size_t)> make,
                             std::function<int64_t()> now)
    : make_(std::move(make)),
      now_(std::move(now)),
      start_ns_(now_()),
      made_(cnt) {
  const size_t thread_cnt = std::min<size_t>(threads, cnt);
  if (thread_cnt > 1) threads_ = StartThreads(thread_cnt, [this] { Work(); });
}

absl::StatusOr<Link> ParallelLinks::MakeTimed(size_t index) {
  const int64_t start_ns = now_();
  absl::StatusOr<Link> link = make_(index);
  const int64_t end_ns = now_();
  const std::lock_guard<std::mutex> lock(mutex_);
  const ThreadReport made = {1, 1, 0, end_ns - start_ns, end_ns - start_ns};
  // A refusal comes before the wait that this is about.
  if (link.ok()) AddReport(made, &report_);
  report_.wall_ns = std::max(report_.wall_ns, end_ns - start_ns_);
  return link;
}

ThreadReport ParallelLinks::Report() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ThreadReport report = report_;
  report.threads = static_cast<uint32_t>(std::max<size_t>(threads_.size(), 1));
  return report;
}

void AddReport(const ThreadReport& more, ThreadReport* sum) {
  if (more.links == 0) return;
  sum->fastest_ns = sum->links == 0
                        ? more.fastest_ns
                        : std::min(sum->fastest_ns, more.fastest_ns);
  sum->threads = std::max(sum->threads, more.threads);
  sum->links += more.links;
  sum->wall_ns += more.wall_ns;
  sum->sum_ns += more.sum_ns;
}

ParallelLinks::~ParallelLinks() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  std::vector<Link> left;
  for (auto& made : made_) {
    if (made.has_value() && made->ok()) left.push_back(**std::move(made));
  }
  CloseLinks(left, static_cast<uint32_t>(threads_.size())).IgnoreError();
}

void ParallelLinks::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_ && begun_ < made_.size()) {
    const size_t index = begun_++;
    lock.unlock();
    absl::StatusOr<Link> link = MakeTimed(index);
    lock.lock();
    made_[index] = std::move(link);
    changed_.notify_one();
  }
}

absl::StatusOr<Link> ParallelLinks::Take() {
  const size_t index = taken_++;
  if (threads_.empty()) return MakeTimed(index);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return made_[index].has_value(); });
  absl::StatusOr<Link> link = *std::move(made_[index]);
  made_[index].reset();
  return link;
}

absl::Status CloseLinks(std::vector<Link>& links, uint32_t threads) {
  std::mutex mutex;
  absl::Status first_error;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < links.size(); i = next++) {
      const absl::Status status = links[i].Detach();
      const std::lock_guard<std::mutex> lock(mutex);
      if (first_error.ok()) first_error = status;
    }
  };
  std::vector<std::thread> helpers;
  const size_t thread_cnt = std::min<size_t>(threads, links.size());
  if (thread_cnt > 1) helpers = StartThreads(thread_cnt - 1, work);
  work();
  for (std::thread& helper : helpers) helper.join();
  links.clear();
  return first_error;
}

}  // namespace ksweep
