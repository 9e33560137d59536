// Counts the bytes of the bodies of each user, so that no user takes the room of all. Any thread.
#ifndef MUSTER_BROKER_HTTP_BODY_SHARES_H_
#define MUSTER_BROKER_HTTP_BODY_SHARES_H_

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "sync/mutex.h"

namespace muster::http {

class BodyShares {
 public:
  explicit BodyShares(size_t most) : most_(most) {}

  // Adds bytes to those that the user holds. False: the user holds more than the share then, and
  // has to give them back all the same.
  bool Take(const std::string& user, size_t bytes);
  void GiveBack(const std::string& user, size_t bytes);

 private:
  const size_t most_;
  Mutex mutex_;
  // Users who hold bytes: no more than there are requests.
  absl::flat_hash_map<std::string, size_t> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_BODY_SHARES_H_
