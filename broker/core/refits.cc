#include "broker/core/refits.h"

namespace muster::core {

void Refits::ClusterChanged(Cluster* cluster) {
  const bool begins = is_done();
  std::erase(changed_, cluster);
  changed_.push_back(cluster);
  cluster->changed_at = ++version_;
  if (!begins) return;
  pass_version_ = version_;
  next_ = 0;
}

std::optional<uint32_t> Refits::Next(size_t end_id) {
  if (next_ < end_id) return next_++;
  // Groups that the pass saw before a later change are seen again in the next one.
  std::erase_if(changed_, [this](const Cluster* one) { return one->changed_at <= pass_version_; });
  pass_version_ = version_;
  next_ = 0;
  return std::nullopt;
}

}  // namespace muster::core
