// Keeps the needed part of each object that a watch tells of, by its uid.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_KEPT_OBJECTS_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_KEPT_OBJECTS_H_

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agents/kubernetes/api/object_watch.h"

namespace muster::kubernetes {

// Thread-safe.
template <typename Kept>
class KeptObjects : public ObjectSink {
 public:
  // Nothing: the object does not count.
  using Parse = std::function<std::optional<Kept>(const Json&)>;

  explicit KeptObjects(Parse parse) : parse_(std::move(parse)) {}

  void OnAll(std::vector<Json> objects) override {
    std::unordered_map<std::string, Kept> all;
    for (const Json& object : objects) {
      if (std::optional<Kept> kept = parse_(object); kept.has_value())
        all.insert_or_assign(UidOf(object), *std::move(kept));
    }
    const std::lock_guard lock(mutex_);
    all_ = std::move(all);
  }
  void OnChange(Json object) override {
    std::optional<Kept> kept = parse_(object);
    const std::lock_guard lock(mutex_);
    if (kept.has_value()) {
      all_.insert_or_assign(UidOf(object), *std::move(kept));
    } else {
      all_.erase(UidOf(object));
    }
  }
  void OnDelete(Json object) override {
    const std::lock_guard lock(mutex_);
    all_.erase(UidOf(object));
  }

  template <typename Predicate>
  bool HasAny(const Predicate& is_wanted) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(all_.begin(), all_.end(),
                       [&](const auto& entry) { return is_wanted(entry.second); });
  }
  // In no order.
  std::vector<Kept> All() const {
    const std::lock_guard lock(mutex_);
    std::vector<Kept> all;
    all.reserve(all_.size());
    for (const auto& [uid, kept] : all_) all.push_back(kept);
    return all;
  }

 private:
  static std::string UidOf(const Json& object) { return TextAt(object, "metadata/uid"); }

  const Parse parse_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Kept> all_;  // guarded by mutex_
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_KEPT_OBJECTS_H_
