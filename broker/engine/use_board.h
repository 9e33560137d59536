// Shows what projects have and use, as of the latest commit. Any thread; the effects thread updates
// it.
#ifndef MUSTER_BROKER_ENGINE_USE_BOARD_H_
#define MUSTER_BROKER_ENGINE_USE_BOARD_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/use_view.h"
#include "sync/mutex.h"

namespace muster::broker {

class UseBoard {
 public:
  // Takes over what has changed.
  void Show(std::vector<core::ShownUse> changed);
  // `user` is one of the project's; empty stands for the project as a whole. Null: there is
  // nothing. Users are shown where their project has a quota for each of them.
  std::shared_ptr<const core::UseView> Read(const std::string& project,
                                            const std::string& user = "") const;
  // Returns the projects that have jobs that have not ended, by name.
  std::vector<std::string> ProjectsWithJobs() const;

 private:
  using Key = std::pair<std::string, std::string>;  // project, user

  mutable Mutex mutex_;
  std::map<Key, std::shared_ptr<const core::UseView>> views_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_USE_BOARD_H_
