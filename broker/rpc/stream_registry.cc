#include "broker/rpc/stream_registry.h"

#include <fmt/format.h>

#include "contract/errors.h"
#include "sync/mutex.h"

namespace muster::broker {

StreamRegistry::StreamRegistry(size_t max_streams, absl::Duration tick)
    : max_streams_(max_streams), tick_(tick), thread_([this] { Run(); }) {}

StreamRegistry::~StreamRegistry() { Stop(); }

absl::Status StreamRegistry::Add(const std::shared_ptr<OpenStream>& stream) {
  const MutexLock lock(mutex_);
  if (ending_) return contract::ShuttingDown();
  if (streams_.size() >= max_streams_) {
    return contract::RetryableError(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_STREAMS",
        fmt::format(
            "{} streams are open, the most that this broker takes (max_streams); close some",
            streams_.size()),
        absl::Seconds(5));
  }
  streams_.emplace(stream.get(), stream);
  return absl::OkStatus();
}

void StreamRegistry::Remove(const OpenStream* stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  if (ending_ && streams_.empty()) changed_.notify_all();
}

void StreamRegistry::EndAll(const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  for (const auto& stream : Snapshot()) stream->End(status);
}

void StreamRegistry::AwaitEnds(absl::Duration patience) {
  const SteadyClock::time_point due = SteadyClock::now() + absl::ToChronoNanoseconds(patience);
  MutexLock lock(mutex_);
  while (!streams_.empty() && lock.WaitUntil(changed_, due)) {
  }
}

void StreamRegistry::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::vector<std::shared_ptr<OpenStream>> StreamRegistry::Snapshot() {
  std::vector<std::shared_ptr<OpenStream>> open;
  const MutexLock lock(mutex_);
  open.reserve(streams_.size());
  for (const auto& [_, weak] : streams_) {
    if (auto stream = weak.lock()) open.push_back(std::move(stream));
  }
  return open;
}

void StreamRegistry::Run() {
  MutexLock lock(mutex_);
  while (true) {
    const SteadyClock::time_point due = SteadyClock::now() + absl::ToChronoNanoseconds(tick_);
    while (!stopping_ && lock.WaitUntil(changed_, due)) {
    }
    if (stopping_) return;
    lock.Unlock();
    const SteadyClock::time_point now = SteadyClock::now();
    for (const auto& stream : Snapshot()) stream->Tick(now);
    lock.Lock();
  }
}

}  // namespace muster::broker
