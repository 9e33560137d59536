// Answers the broker's questions about the cluster beside everything else. They are never in the
// journal, since an answer is of use only on the connection that asked.
//
// Any thread may ask. A lane of two threads calls the backend: a preflight that hangs delays no
// plan.
#ifndef MUSTER_AGENTS_CORE_QUESTIONS_H_
#define MUSTER_AGENTS_CORE_QUESTIONS_H_

#include <atomic>
#include <functional>
#include <optional>

#include "agents/core/backend.h"
#include "agents/core/worker_lane.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

// Questions that wait or are being answered; each is a person's. Further ones are answered
// RESOURCE_EXHAUSTED.
inline constexpr int kMaxQuestions = 16;
// The broker's limit for a message (4 MiB), less what is around the answer.
inline constexpr size_t kMaxAnswerBytes = 3 << 20;
// The text of a plan has at most this many bytes, because ten plans are one answer of the broker. A
// longer text is cut, and says so.
inline constexpr size_t kMaxSubmissionBytes = 256 << 10;

class Questions {
 public:
  using Done = std::function<void(agent::v1::AgentAnswer)>;

  // The backend outlives this object. `users` is the last line of each check, if the backend does
  // not itself say as whom jobs run.
  explicit Questions(Backend* backend, std::optional<v1::ClusterCheck> users = std::nullopt);
  // `done` is called once, from the lane's thread, or at once. `run` is the run that a question
  // `signal` names; nothing if the agent does not know it.
  void Ask(agent::v1::AgentQuestion question, Done done,
           std::optional<RunHandle> run = std::nullopt);

 private:
  agent::v1::AgentAnswer Answer(const agent::v1::AgentQuestion& question,
                                const std::optional<RunHandle>& run);
  absl::Status Signal(const agent::v1::SignalQuestion& signal, const std::optional<RunHandle>& run);

  Backend& backend_;
  const std::optional<v1::ClusterCheck> users_;
  std::atomic<int> count_ = 0;
  WorkerLane lane_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_QUESTIONS_H_
