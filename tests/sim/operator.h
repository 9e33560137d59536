// A person who cordons clusters and takes that back, and repeats what was not answered.
#ifndef MUSTER_TESTS_SIM_OPERATOR_H_
#define MUSTER_TESTS_SIM_OPERATOR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/auditor.h"
#include "tests/sim/broker.h"
#include "tests/sim/world.h"

namespace muster::sim {

class SimOperator {
 public:
  SimOperator(World* world, Auditor* auditor, SimBroker* broker, std::vector<std::string> clusters)
      : world_(*world), auditor_(*auditor), broker_(*broker), clusters_(std::move(clusters)) {}

  // Plans some cordons within `period`, each with its end.
  void Start(absl::Duration period);
  // All cordons have ended.
  bool IsDone() const { return open_ == 0; }

 private:
  // Asks until it is answered; each cordon is followed by its end. `is_answered`: shared by the
  // repeats, so that the answers to several of them count once.
  void Ask(const std::string& cluster, bool is_on, const std::shared_ptr<bool>& is_answered);

  World& world_;
  Auditor& auditor_;
  SimBroker& broker_;
  const std::vector<std::string> clusters_;
  int open_ = 0;  // cordons whose end is not acknowledged
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_OPERATOR_H_
