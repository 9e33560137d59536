// What only the agents can judge of a job, asked before it is accepted: whether its kubernetes
// section, its shared memory, its mounts and the place of its results are possible there.
//
// Any thread. Most jobs have none of these and go to the engine at once. For the others each
// cluster of kind Kubernetes that could take them is asked for a plan, once for all that are alike
// in a while. A cluster that cannot be asked refuses nothing: such a job is accepted, and what is
// wrong with it ends its run.
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

// A server that answers at all does so within a few hundred milliseconds; the client waits
// meanwhile.
inline constexpr absl::Duration kSubmitPatience = absl::Seconds(5);
// Different jobs asked about at the same time; further ones are not. Agents answer two questions at
// a time and keep 16, and people want answers as well.
inline constexpr size_t kMaxAsked = 4;
// Submits that wait for the same answer, about 1 KiB each; further ones are not asked about.
inline constexpr size_t kMaxWaitingSubmits = 10'000;
// How long what nobody refused is good for jobs that are alike, and how many such are remembered.
inline constexpr absl::Duration kAnswerAge = absl::Seconds(10);
inline constexpr size_t kMaxRememberedAnswers = 1024;
// How long nothing is asked after an agent was silent: submits are not to wait one after the other.
inline constexpr absl::Duration kRestAfterSilence = absl::Seconds(30);

class SubmitQuestions {
 public:
  // As Engine::Submit; FAILED_PRECONDITION, CANNOT_BE_PLACED also for what every agent refuses that
  // could take the job. Does not block.
  void Submit(const Context& context, core::Submit submit, SubmitDone done);

 private:
  using Done = std::function<void(const core::Refusals&)>;
  struct Asking;

  bool IsRemembered(core::Fingerprint alike);
  // `done` is called once.
  void Ask(const Context& context, core::Fingerprint alike, const core::SubmitItem& item,
           Done done);
  void End(core::Fingerprint alike, const JobPlans& plans);

  std::mutex mutex_;
  std::map<core::Fingerprint, std::vector<Done>> asked_;
  size_t waiting_ = 0;  // all of asked_
  // Until when nobody needs to ask.
  std::map<core::Fingerprint, SteadyClock::time_point> remembered_;
  SteadyClock::time_point silent_until_;  // nothing is asked before
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_SUBMIT_QUESTIONS_H_
