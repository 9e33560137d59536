// What only the agents can judge of a job, asked before it is accepted: whether its kubernetes
// section, its shared memory, its mounts, what it brings along, the place of its results and GPUs
// by a resource's name are possible there.
//
// Any thread. Most jobs have none of these and go to the engine at once. For the others each
// cluster of kind Kubernetes that could take them is asked for a plan, once for all that are alike
// in a while. That nothing speaks against a job is good for all that are alike; a refusal is for
// the very same job, and the others are asked about themselves. What agents only warn of is told
// with the answer. A cluster that cannot be asked refuses nothing: such a job is accepted, and what
// is wrong with it ends its run.
#ifndef MUSTER_BROKER_RPC_SUBMIT_QUESTIONS_H_
#define MUSTER_BROKER_RPC_SUBMIT_QUESTIONS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/engine/effects.h"
#include "broker/rpc/ask_agent.h"
#include "broker/rpc/context.h"
#include "broker/rpc/stream_registry.h"

namespace muster::broker {

struct SubmitBounds {
  // Of one question: a server that answers at all does so within a few hundred milliseconds. None
  // begins later than this after the submit came, so that its client waits twice as long at most.
  absl::Duration patience = absl::Seconds(5);
  // Different jobs asked about at the same time; further ones are not. Agents answer two questions
  // at a time and keep 16, and people want answers as well.
  size_t max_asked = 4;
  // Submits that wait for answers, and the specs that they hold meanwhile; what comes on top of
  // either is not asked about.
  size_t max_waiting = 10'000;
  size_t max_waiting_bytes = 64 << 20;
  // How long what nobody refused is good for jobs that are alike.
  absl::Duration answer_age = absl::Seconds(10);
  // How many such are remembered.
  size_t max_remembered = 1024;
  // How long nothing is asked after an agent was silent: submits are not to wait one after the
  // other.
  absl::Duration rest_after_silence = absl::Seconds(30);
};

// Warnings of one job that its answer has at most.
inline constexpr int kMaxWarnings = 4;
// Of all warnings of one answer: many jobs that are alike have the same ones.
inline constexpr size_t kMaxWarningsBytes = 1 << 20;

// What of a plan a submit of its job warns of: the agent's own warnings, or the checks that warned.
std::vector<v1::SubmitWarning> WarningsOf(const v1::JobPlan& plan);

class SubmitQuestions {
 public:
  explicit SubmitQuestions(SubmitBounds bounds) : bounds_(bounds) {}

  // As Engine::Submit; FAILED_PRECONDITION, CANNOT_BE_PLACED also for what every agent refuses that
  // could take the job. Does not block. The answer has what the agents warn of.
  void Submit(const Context& context, core::Submit submit, SubmitDone done);

 private:
  struct Answer {
    core::Refusals refusals;                  // none also if nobody could be asked
    std::vector<v1::SubmitWarning> warnings;  // of those that did not refuse
    core::Fingerprint asked = 0;              // of the job that the refusals are about
  };
  using Done = std::function<void(const Answer&)>;
  // One item of a submit.
  struct Job {
    size_t index = 0;
    core::Fingerprint fingerprint = 0;
  };
  struct Asking;
  using AskingPtr = std::shared_ptr<Asking>;

  bool IsRemembered(core::Fingerprint alike);
  // Room for a submit that waits.
  bool Enter(size_t bytes);
  void Leave(size_t bytes);
  // Asks about the first of these jobs, which are alike, and then about those that its answer does
  // not settle.
  void AskAbout(const AskingPtr& asking, core::Fingerprint alike, std::vector<Job> jobs);
  void Settle(const AskingPtr& asking, core::Fingerprint alike, const std::vector<Job>& jobs,
              const Answer& answer);
  // The last one lets the submit go on.
  void EndOfAlike(const AskingPtr& asking);
  // `done` is called once.
  void Ask(const Context& context, core::Fingerprint alike, core::Fingerprint fingerprint,
           const std::shared_ptr<const v1::JobSpec>& spec, Done done);
  void End(core::Fingerprint alike, core::Fingerprint asked, const JobPlans& plans);

  const SubmitBounds bounds_;
  std::mutex mutex_;
  std::map<core::Fingerprint, std::vector<Done>> asked_;  // by what is alike
  size_t waiting_ = 0;                                    // submits
  size_t waiting_bytes_ = 0;
  // Until when nobody needs to ask.
  std::map<core::Fingerprint, SteadyClock::time_point> remembered_;
  SteadyClock::time_point silent_until_;  // nothing is asked before
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_SUBMIT_QUESTIONS_H_
