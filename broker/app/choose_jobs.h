// Walks over the jobs that a filter takes, the oldest first, for a request that changes them.
#ifndef MUSTER_BROKER_APP_CHOOSE_JOBS_H_
#define MUSTER_BROKER_APP_CHOOSE_JOBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/store/store.h"
#include "contract/filter.h"

namespace muster::broker {

class ChosenPages {
 public:
  ChosenPages(const store::Store* store, store::Scope scope, contract::Filter filter);

  // Returns the next jobs, at most `limit`; no job means that there are no more. Blocks; call it on
  // a thread that may read the store.
  absl::StatusOr<std::vector<v1::Job>> Next(int limit);
  // True if no job follows those that Next has returned.
  bool at_end() const { return at_end_; }

 private:
  const store::Store* const store_;
  const store::Scope scope_;
  store::ListQuery query_;
  bool at_end_ = false;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CHOOSE_JOBS_H_
