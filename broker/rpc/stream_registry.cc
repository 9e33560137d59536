#include "broker/rpc/stream_registry.h"

#include <fmt/format.h>

#include <utility>

#include "absl/time/clock.h"
#include "broker/auth/refusals.h"
#include "contract/errors.h"
#include "sync/mutex.h"

namespace muster::broker {

StreamRegistry::StreamRegistry(size_t max_streams, absl::Duration tick)
    : max_streams_(max_streams), tick_(tick), thread_([this] { Run(); }) {}

StreamRegistry::~StreamRegistry() { Stop(); }

absl::Status StreamRegistry::Add(const std::shared_ptr<OpenStream>& stream,
                                 std::shared_ptr<const auth::Token> token) {
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
  streams_.emplace(stream.get(), Entry{stream, std::move(token)});
  return absl::OkStatus();
}

void StreamRegistry::Remove(const OpenStream* stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  if (ending_ && streams_.empty()) changed_.notify_all();
}

size_t StreamRegistry::size() const {
  const MutexLock lock(mutex_);
  return streams_.size();
}

void StreamRegistry::EndAll(const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  for (const Alive& open : Snapshot()) open.stream->End(status);
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

std::vector<StreamRegistry::Alive> StreamRegistry::Snapshot() {
  std::vector<Alive> open;
  const MutexLock lock(mutex_);
  open.reserve(streams_.size());
  for (const auto& [_, entry] : streams_) {
    if (auto stream = entry.stream.lock()) open.push_back({std::move(stream), entry.token});
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
    const absl::Time wall = absl::Now();
    for (const Alive& open : Snapshot()) {
      const bool has_ended = open.token != nullptr && !open.token->IsLive(wall);
      if (has_ended) {
        open.stream->End(auth::NotAccepted());
      } else {
        open.stream->Tick(now);
      }
    }
    lock.Lock();
  }
}

}  // namespace muster::broker
