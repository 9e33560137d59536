// The runs in one namespace, as its watches tell of them.
#ifndef MUSTER_AGENTS_KUBERNETES_NAMESPACE_RUNS_H_
#define MUSTER_AGENTS_KUBERNETES_NAMESPACE_RUNS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api.h"
#include "agents/kubernetes/object_watch.h"
#include "agents/kubernetes/run_store.h"

namespace muster::kubernetes {

// Thread-safe, once Watch has returned.
class NamespaceRuns {
 public:
  // `on_pod` and `wake` are RunStore's.
  NamespaceRuns(std::string name, std::function<void(const PodObject&)> on_pod,
                std::function<void()> wake);
  NamespaceRuns(const NamespaceRuns&) = delete;
  NamespaceRuns& operator=(const NamespaceRuns&) = delete;

  const std::string& name() const { return name_; }
  RunStore& store() { return store_; }
  const RunStore& store() const { return store_; }

  // Begins to watch its Jobs, pods and Events; once. `api` must outlive this object.
  void Watch(Api* api);
  // Waits for the first lists, or why there are none.
  void AwaitFirstAnswers(absl::Time deadline);

  // OK: the store has what there is. Otherwise why not: runs there cannot be judged.
  absl::Status state() const;
  // PERMISSION_DENIED: the agent may not see runs there, and has not for a while. OK else.
  absl::Status rights() const;

 private:
  const std::string name_;
  RunStore store_;
  // Last, so that they end first.
  std::vector<std::unique_ptr<ObjectWatch>> watches_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_NAMESPACE_RUNS_H_
