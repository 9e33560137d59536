#include "agents/machines/container_remover.h"

#include <chrono>
#include <utility>

#include "agents/machines/clock_now.h"
#include "agents/machines/container_removal.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// Patience with the removal of one run's containers. podman and docker take a second or less, on a
// host under load several.
constexpr int64_t kPatienceMs = 20'000;
// All runs pause this long after a try that failed, because mostly the tool is at fault.
constexpr std::chrono::seconds kRetry(5);

}  // namespace

ContainerRemover::ContainerRemover(std::function<void(const std::string& run_key)> gone)
    : gone_(std::move(gone)), thread_([this] { Loop(); }) {}

ContainerRemover::~ContainerRemover() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void ContainerRemover::Remove(const std::string& run_key, const std::string& run_directory) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back({.run_key = run_key, .directory = run_directory});
  }
  woken_.notify_all();
}

void ContainerRemover::Loop() {
  MutexLock lock(mutex_);
  while (!stop_) {
    if (tasks_.empty()) {
      lock.Wait(woken_);
      continue;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.Unlock();
    const bool is_done = Try(&task);
    lock.Lock();
    if (is_done) continue;
    tasks_.push_back(std::move(task));
    const auto due = std::chrono::steady_clock::now() + kRetry;
    while (!stop_ && lock.WaitUntil(woken_, due)) {
    }
  }
}

bool ContainerRemover::Try(Task* task) {
  const int64_t until_ms = SteadyMilliseconds() + kPatienceMs;
  if (RemoveContainersOf(task->directory, {.until_ms = until_ms, .stop = &stop_})) {
    gone_(task->run_key);
    return true;
  }
  if (!stop_ && !std::exchange(task->was_told, true)) {
    LogEvent(spdlog::level::warn, "container_not_removed",
             {{"run", task->run_key},
              {"retry_in", fmt::format("{}s", kRetry.count())},
              {"reason", fmt::format("the tool named in {}/containers failed or did not answer in "
                                     "{} s; the run counts as there until it does",
                                     task->directory, kPatienceMs / 1000)}});
  }
  return false;
}

}  // namespace muster::machines
