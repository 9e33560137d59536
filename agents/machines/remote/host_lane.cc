#include "agents/machines/remote/host_lane.h"

#include <utility>

namespace muster::machines {

HostLane::HostLane(hosts::Host* host) : host_(*host), thread_([this] { Loop(); }) {}

std::shared_ptr<HostLane::Call> HostLane::Begin(std::string question, Ask ask) {
  const MutexLock lock(mutex_);
  if (stopping_) return nullptr;
  if (late_ != nullptr && late_->question == question) return std::exchange(late_, nullptr);
  if (late_ != nullptr && !late_->is_done) return nullptr;
  late_.reset();
  auto call = std::make_shared<Call>(
      Call{.question = std::move(question), .ask = std::move(ask), .answer = {}});
  waiting_.push_back(call);
  changed_.notify_all();
  return call;
}

bool HostLane::Await(const std::shared_ptr<Call>& call,
                     std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (!call->is_done && lock.WaitUntil(changed_, deadline)) {
  }
  if (call->is_done) return true;
  const bool has_begun = std::erase(waiting_, call) == 0;
  if (has_begun) late_ = call;
  return false;
}

void HostLane::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void HostLane::Loop() {
  while (true) {
    std::shared_ptr<Call> call;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && waiting_.empty()) lock.Wait(changed_);
      if (waiting_.empty()) return;
      call = std::move(waiting_.front());
      waiting_.pop_front();
    }
    std::any answer = call->ask(host_);
    {
      const MutexLock lock(mutex_);
      call->answer = std::move(answer);
      call->is_done = true;
    }
    changed_.notify_all();
  }
}

}  // namespace muster::machines
