#include "broker/engine/use_board.h"

namespace muster::broker {

void UseBoard::Show(std::vector<core::ShownUse> changed) {
  if (changed.empty()) return;
  const MutexLock lock(mutex_);
  for (core::ShownUse& shown : changed) {
    Key key(std::move(shown.project), std::move(shown.user));
    if (shown.view == nullptr) {
      views_.erase(key);
    } else {
      views_[std::move(key)] = std::move(shown.view);
    }
  }
}

std::shared_ptr<const core::UseView> UseBoard::Read(const std::string& project,
                                                    const std::string& user) const {
  const MutexLock lock(mutex_);
  const auto found = views_.find({project, user});
  return found == views_.end() ? nullptr : found->second;
}

std::vector<std::string> UseBoard::ProjectsWithJobs() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> projects;
  for (const auto& [key, view] : views_) {
    if (key.second.empty() && view->jobs.queued + view->jobs.active > 0)
      projects.push_back(key.first);
  }
  return projects;
}

}  // namespace muster::broker
