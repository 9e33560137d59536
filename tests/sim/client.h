// Simulates people and programs: they submit jobs, repeat what was not answered and sometimes what
// was, cancel, and watch.
#ifndef MUSTER_TESTS_SIM_CLIENT_H_
#define MUSTER_TESTS_SIM_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "muster/v1/job_spec.pb.h"
#include "tests/sim/auditor.h"
#include "tests/sim/broker.h"
#include "tests/sim/world.h"

namespace muster::sim {

class SimClient {
 public:
  SimClient(World* world, Auditor* auditor, SimBroker* broker, std::vector<std::string> clusters);

  // Plans `operations` submits over `period`, and what follows from them; begins to watch.
  void Start(int operations, absl::Duration period);
  // Everything was answered, and the watch has seen everything.
  bool IsDone() const;

 private:
  struct Operation {
    std::string name;
    core::SubmitItem item;
    std::shared_ptr<const v1::JobSpec> another_spec;  // for a request_id that is used wrongly
    bool wants_cancel = false;
    absl::Duration cancel_after;
    uint64_t job = 0;
    bool cancel_is_acknowledged = false;
    bool wants_hold = false;
    absl::Duration hold_after;
    absl::Duration release_after;  // that
    bool hold_is_answered = false;
    bool wants_move = false;
    absl::Duration move_after;
    bool release_is_answered = false;
    bool was_sent = false;
  };

  std::shared_ptr<const v1::JobSpec> MakeSpec(const std::string& name, bool runs_for_ever);
  Operation MakeOperation(int number);
  // Lets the operation at this place of a request depend on earlier ones: by number if their jobs
  // are known, by place if they are of the same request. A request that was sent once stays as it
  // is.
  void MakeDependent(const std::vector<size_t>& together, size_t place);
  // Submits until all are answered; several make one request.
  void Submit(std::vector<size_t> operations);
  void OnSubmitted(const std::vector<size_t>& operations,
                   const absl::StatusOr<v1::SubmitJobsResponse>& result);
  void RepeatWithAnotherSpec(size_t operation);
  void Cancel(size_t operation);
  void Hold(size_t operation);
  void Release(size_t operation);
  void Move(size_t operation);
  void Watch();

  World& world_;
  Auditor& auditor_;
  SimBroker& broker_;
  const std::vector<std::string> clusters_;
  std::vector<Operation> operations_;
  uint64_t watched_up_to_ = 0;
};

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_CLIENT_H_
