#include "broker/logs/followers.h"

#include <utility>
#include <vector>

#include "sync/mutex.h"

namespace muster::logs {

// Its lock keeps the promise "no wake begins after the end" also for a wake that was looked up
// before the end.
class Followers::Follower {
 public:
  explicit Follower(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Wake() {
    const MutexLock lock(mutex_);
    if (wake_) wake_();
  }
  void Stop() {
    const MutexLock lock(mutex_);
    wake_ = nullptr;
  }

 private:
  Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
};

class Followers::Registration : public Follow {
 public:
  Registration(Followers* owner, std::multimap<LogId, std::shared_ptr<Follower>>::iterator entry)
      : owner_(owner), entry_(entry) {}

  ~Registration() override {
    entry_->second->Stop();
    const MutexLock lock(owner_->mutex_);
    owner_->followers_.erase(entry_);
    --owner_->size_;
  }

 private:
  Followers* const owner_;
  const std::multimap<LogId, std::shared_ptr<Follower>>::iterator entry_;
};

std::unique_ptr<Follow> Followers::Start(const LogId& log, std::function<void()> wake) {
  const MutexLock lock(mutex_);
  const auto entry = followers_.emplace(log, std::make_shared<Follower>(std::move(wake)));
  ++size_;
  return std::make_unique<Registration>(this, entry);
}

void Followers::Wake(const LogId& log) {
  if (size_ == 0) return;
  std::vector<std::shared_ptr<Follower>> woken;
  {
    const MutexLock lock(mutex_);
    const auto [begin, end] = followers_.equal_range(log);
    for (auto it = begin; it != end; ++it) woken.push_back(it->second);
  }
  for (const auto& follower : woken) follower->Wake();
}

}  // namespace muster::logs
