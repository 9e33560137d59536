// Removes the containers of runs whose supervisors are gone, one run after the other, and tries
// again until they are. In a thread of its own: a tool may take long.
#ifndef MUSTER_AGENTS_MACHINES_CONTAINER_REMOVER_H_
#define MUSTER_AGENTS_MACHINES_CONTAINER_REMOVER_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "sync/mutex.h"

namespace muster::machines {

class ContainerRemover {
 public:
  // `gone` is called in the remover's thread, once for each Remove.
  explicit ContainerRemover(std::function<void(const std::string& run_key)> gone);
  // A container that has not been removed stays written down in its run's directory.
  ~ContainerRemover();

  void Remove(const std::string& run_key, const std::string& run_directory);

 private:
  struct Task {
    std::string run_key;
    std::string directory;
    bool was_told = false;  // that it takes longer
  };

  void Loop();
  // Returns whether it is done.
  bool Try(Task* task);

  const std::function<void(const std::string& run_key)> gone_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  std::condition_variable woken_;
  // At most one for each run that has a directory.
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CONTAINER_REMOVER_H_
