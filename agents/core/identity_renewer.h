// Renews the agent's certificate over the network once a third of its life is left.
//
// A thread of its own.
#ifndef MUSTER_AGENTS_CORE_IDENTITY_RENEWER_H_
#define MUSTER_AGENTS_CORE_IDENTITY_RENEWER_H_

#include <condition_variable>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/identity.h"
#include "sync/mutex.h"

namespace grpc {
class ClientContext;
}

namespace muster::agents {

class IdentityRenewer {
 public:
  // Without TLS there is nothing to renew, and no thread.
  explicit IdentityRenewer(BrokerEnd broker);
  // Ends a call under way.
  ~IdentityRenewer();

 private:
  void Run();
  // Returns the time until a renewal is due; none is left if it is.
  absl::Duration UntilDue() const;
  // Returns the same for a certificate that has just come. Even one that is due already waits: a
  // clock that is far ahead would ask the broker without end.
  absl::Duration UntilNextDue() const;
  absl::Status Renew();
  // False: the agent ends.
  bool Wait(absl::Duration time);

  const BrokerEnd broker_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // under way
  std::thread thread_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_IDENTITY_RENEWER_H_
