#include "agents/core/questions.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "agents/core/clean_text.h"
#include "contract/text.h"

namespace muster::agents {
namespace {

constexpr int kThreads = 2;

agent::v1::AgentAnswer ErrorTo(uint64_t id, const absl::Status& status) {
  agent::v1::AgentAnswer answer;
  answer.set_id(id);
  answer.mutable_error()->set_code(status.raw_code());
  answer.mutable_error()->set_message(CleanText(ToStd(status.message()), kMaxDetailBytes));
  return answer;
}

void CutSubmission(v1::JobPlan* plan) {
  const size_t bytes = plan->submission().size();
  if (bytes <= kMaxSubmissionBytes) return;
  plan->set_submission(fmt::format("{}\n# ... cut here: the whole has {} bytes\n",
                                   CleanText(plan->submission(), kMaxSubmissionBytes), bytes));
}

// A message with a foreign byte would end the connection.
agent::v1::AgentAnswer Sendable(agent::v1::AgentAnswer answer) {
  if (answer.has_plan()) CutSubmission(answer.mutable_plan());
  CleanAllTexts(&answer, kMaxAnswerBytes);
  const size_t bytes = answer.ByteSizeLong();
  if (bytes <= kMaxAnswerBytes) return answer;
  return ErrorTo(answer.id(), absl::ResourceExhaustedError(fmt::format(
                                  "the answer has {} bytes; the most that is sent is {}", bytes,
                                  kMaxAnswerBytes)));
}

}  // namespace

Questions::Questions(Backend* backend, std::optional<v1::ClusterCheck> users)
    : backend_(*backend), users_(std::move(users)), lane_(kThreads) {}

void Questions::Ask(agent::v1::AgentQuestion question, Done done, std::optional<RunHandle> run) {
  if (++count_ > kMaxQuestions) {
    --count_;
    return done(ErrorTo(
        question.id(),
        absl::ResourceExhaustedError(fmt::format(
            "the agent has {} questions to answer already; ask again later", kMaxQuestions))));
  }
  lane_.Post([this, question = std::move(question), done = std::move(done), run = std::move(run)] {
    agent::v1::AgentAnswer answer = Sendable(Answer(question, run));
    --count_;
    done(std::move(answer));
  });
}

absl::Status Questions::Signal(const agent::v1::SignalQuestion& signal,
                               const std::optional<RunHandle>& run) {
  const auto send = backend_.capabilities().send_signal;
  if (send == nullptr) return absl::UnimplementedError("this agent sends no signals");
  if (!run.has_value()) {
    return absl::NotFoundError(fmt::format("the agent does not know the run {}", signal.run_key()));
  }
  return send(*run, {.number = static_cast<int>(signal.signal()), .target = signal.target()});
}

agent::v1::AgentAnswer Questions::Answer(const agent::v1::AgentQuestion& question,
                                         const std::optional<RunHandle>& run) {
  agent::v1::AgentAnswer answer;
  answer.set_id(question.id());
  switch (question.question_case()) {
    case agent::v1::AgentQuestion::kCheck:
      *answer.mutable_check() = backend_.Check();
      if (users_.has_value()) *answer.mutable_check()->add_checks() = *users_;
      return answer;
    case agent::v1::AgentQuestion::kDescribe: {
      absl::StatusOr<v1::ClusterDetails> details =
          backend_.Describe(!question.describe().without_jobs());
      if (!details.ok()) return ErrorTo(question.id(), details.status());
      *answer.mutable_describe() = *std::move(details);
      return answer;
    }
    case agent::v1::AgentQuestion::kPlan: {
      absl::StatusOr<v1::JobPlan> plan =
          backend_.Plan(question.plan().spec(), question.plan().user());
      if (!plan.ok()) return ErrorTo(question.id(), plan.status());
      *answer.mutable_plan() = *std::move(plan);
      return answer;
    }
    case agent::v1::AgentQuestion::kSignal: {
      const absl::Status sent = Signal(question.signal(), run);
      if (!sent.ok()) return ErrorTo(question.id(), sent);
      answer.mutable_signal();
      return answer;
    }
    case agent::v1::AgentQuestion::kSendFiles:
    case agent::v1::AgentQuestion::QUESTION_NOT_SET:
      break;
  }
  return ErrorTo(question.id(),
                 absl::UnimplementedError("this agent does not know such questions; install the "
                                          "broker's version of it"));
}

}  // namespace muster::agents
