// Keeps the needed part of each object that a watch tells of, by its uid.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_KEPT_OBJECTS_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_KEPT_OBJECTS_H_

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agents/kubernetes/api/object_watch.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// Any thread may use it.
template <typename Kept>
class KeptObjects : public ObjectSink {
 public:
  // Nothing: the object does not count.
  using Parse = std::function<std::optional<Kept>(const Json&)>;

  // An object that was `before` is `now`; null if it is not there.
  struct Move {
    const Kept* before = nullptr;
    const Kept* now = nullptr;
  };
  using Moves = std::vector<Move>;

  // Who is told of changes.
  struct News {
    // All that a list, or a change, moves. Called with the lock; must not block. Null: nobody.
    std::function<void(const Moves&)> on_moves = nullptr;
    // Tells whether a change of an object counts, after the first list. Null: none does.
    std::function<bool(const Kept& before, const Kept& now)> is_other = nullptr;
    // An object has come, gone or changed so. Called without a lock; must not block. Null: nobody.
    std::function<void()> on_other = nullptr;
  };

  explicit KeptObjects(Parse parse, News news = {})
      : parse_(std::move(parse)), news_(std::move(news)) {}

  void OnAll(std::vector<Json> objects) override {
    std::unordered_map<std::string, Kept> all;
    for (const Json& object : objects) {
      if (std::optional<Kept> kept = parse_(object); kept.has_value())
        all.insert_or_assign(UidOf(object), *std::move(kept));
    }
    const MutexLock lock(mutex_);
    Moves moves;
    for (const auto& [uid, kept] : all_) moves.push_back({.before = &kept});
    for (const auto& [uid, kept] : all) moves.push_back({.now = &kept});
    Tell(moves);
    all_ = std::move(all);
  }
  void OnChange(Json object) override {
    std::optional<Kept> kept = parse_(object);
    bool is_other = false;
    {
      const MutexLock lock(mutex_);
      const auto known = all_.find(UidOf(object));
      is_other = (known != all_.end()) != kept.has_value();
      if (known != all_.end() && kept.has_value() && news_.is_other)
        is_other = news_.is_other(known->second, *kept);
      Tell({{.before = known == all_.end() ? nullptr : &known->second,
             .now = kept.has_value() ? &*kept : nullptr}});
      if (kept.has_value()) {
        all_.insert_or_assign(UidOf(object), *std::move(kept));
      } else {
        all_.erase(UidOf(object));
      }
    }
    if (is_other && news_.on_other) news_.on_other();
  }
  void OnDelete(Json object) override {
    {
      const MutexLock lock(mutex_);
      if (const auto known = all_.find(UidOf(object)); known != all_.end()) {
        Tell({{.before = &known->second}});
        all_.erase(known);
      }
    }
    if (news_.on_other) news_.on_other();
  }

  template <typename Predicate>
  bool HasAny(const Predicate& is_wanted) const {
    const MutexLock lock(mutex_);
    return std::any_of(all_.begin(), all_.end(),
                       [&](const auto& entry) { return is_wanted(entry.second); });
  }
  // They come in no order.
  std::vector<Kept> All() const {
    const MutexLock lock(mutex_);
    std::vector<Kept> all;
    all.reserve(all_.size());
    for (const auto& [uid, kept] : all_) all.push_back(kept);
    return all;
  }

 private:
  void Tell(const Moves& moves) const {
    if (news_.on_moves) news_.on_moves(moves);
  }
  static std::string UidOf(const Json& object) { return TextAt(object, "metadata/uid"); }

  const Parse parse_;
  const News news_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Kept> all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_KEPT_OBJECTS_H_
