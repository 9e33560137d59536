// What use cases work with. Everything here outlives every call.
#ifndef MUSTER_BROKER_APP_SERVICES_H_
#define MUSTER_BROKER_APP_SERVICES_H_

#include <functional>

#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/engine/effects.h"

namespace muster::store {
class Store;
}

namespace muster::broker {

class Engine;

struct Services {
  using Task = std::function<void()>;

  Engine* engine = nullptr;
  const store::Store* store = nullptr;
  // Run a task on a thread that may read the store. False: too many wait, and it was not taken.
  // `count` is for those that take about a second; one of them runs at a time.
  std::function<bool(Task)> read;
  std::function<bool(Task)> count;
  // As Engine::Submit, after a look at the files that the jobs bring along, and a word with the
  // agents.
  std::function<void(core::Submit, SubmitDone)> submit;
  std::function<absl::Time()> now;
};

// What a call is told that reads the store while too many others do.
absl::Status ReadersBusy();

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_SERVICES_H_
