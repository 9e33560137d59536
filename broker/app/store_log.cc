#include "broker/app/store_log.h"

#include <fmt/format.h>

#include <utility>

#include "broker/app/agent_streams.h"
#include "broker/engine/engine.h"
#include "broker/logs/archive.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/roles.h"

namespace muster::broker {
namespace {

constexpr uint32_t kProtocolVersion = 1;

absl::Status Check(const agent::v1::LogChunk& chunk) {
  if (chunk.data().size() > StoreLog::kMaxChunkBytes) {
    return contract::BadField(
        "chunk.data",
        fmt::format("has {} bytes; the most is {}", chunk.data().size(), StoreLog::kMaxChunkBytes));
  }
  if (!v1::LogStream_IsValid(chunk.stream())) {
    return contract::BadField("chunk.stream",
                              fmt::format("{} is not a stream", static_cast<int>(chunk.stream())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<agent::v1::PushResponse>> StoreLog::Take(
    const agent::v1::PushRequest& request) {
  switch (request.message_case()) {
    case agent::v1::PushRequest::kHello:
      if (absl::Status status = Greet(request.hello()); !status.ok()) return status;
      return std::nullopt;
    case agent::v1::PushRequest::kChunk: {
      if (cluster_.empty()) return MustBeFirst();
      // This is checked before each chunk: a pusher whose agent was replaced or is gone must not
      // write any more.
      if (absl::Status status = CheckAgent(); !status.ok()) return status;
      absl::StatusOr<agent::v1::PushResponse> answer = Append(request.chunk());
      if (!answer.ok()) return answer.status();
      return *std::move(answer);
    }
    case agent::v1::PushRequest::MESSAGE_NOT_SET:
      break;
  }
  return UnknownMessage();
}

absl::Status StoreLog::Greet(const agent::v1::LogHello& hello) {
  if (!cluster_.empty()) return CameTwice();
  if (absl::Status status = CheckProtocol(hello.protocol_version(), kProtocolVersion); !status.ok())
    return status;
  cluster_ = hello.cluster();
  journal_id_ = hello.journal_id();
  return CheckAgent();
}

absl::Status StoreLog::CheckAgent() const {
  return CheckConnected(services_.engine->agents(), cluster_, journal_id_);
}

absl::StatusOr<agent::v1::PushResponse> StoreLog::Append(const agent::v1::LogChunk& chunk) {
  if (absl::Status status = Check(chunk); !status.ok()) return status;
  const absl::StatusOr<Known> known = Find(chunk.run_key());
  if (!known.ok()) return known.status();

  agent::v1::PushResponse answer;
  answer.set_run_key(chunk.run_key());
  answer.set_rank(chunk.rank());
  answer.set_stream(chunk.stream());
  if (!known->accepted || chunk.rank() >= known->ranks) {
    answer.set_next_offset(chunk.offset() + chunk.data().size());
    answer.set_discarding(true);
    answer.set_complete(chunk.end());
    return answer;
  }
  const logs::LogId log{
      known->key.job, known->key.run, chunk.rank(),
      chunk.stream() == v1::LOG_STREAM_STDERR ? v1::LOG_STREAM_STDERR : v1::LOG_STREAM_STDOUT};
  const auto appended = services_.archive->Append(log, chunk.offset(), chunk.data(), chunk.end());
  if (!appended.ok()) return appended.status();
  answer.set_next_offset(appended->next_offset);
  answer.set_discarding(appended->discarding);
  answer.set_complete(appended->complete);
  return answer;
}

absl::StatusOr<StoreLog::Known> StoreLog::Find(const std::string& run_key) {
  if (const auto found = known_.find(run_key); found != known_.end()) return found->second;
  Known known;
  if (auto key = contract::RunKey::Parse(run_key); key.ok()) {
    const absl::StatusOr<v1::Job> job = services_.store->GetJob(store::Scope::All(), key->job);
    if (!job.ok() && !absl::IsNotFound(job.status())) return job.status();
    if (job.ok() && key->run <= static_cast<uint32_t>(job->runs_size())) {
      const v1::Run& run = job->runs(static_cast<int>(key->run) - 1);
      known.accepted = run.run_key() == run_key && run.cluster() == cluster_;
      known.ranks = contract::RankCount(job->spec());
    }
    known.key = *std::move(key);
  }
  if (known_.size() >= kMaxKnownRuns) known_.clear();
  known_.emplace(run_key, known);
  return known;
}

}  // namespace muster::broker
