#include "broker/app/join_fetch.h"

#include <cstdint>
#include <utility>

#include "broker/app/agent_streams.h"
#include "contract/errors.h"

namespace muster::broker {
namespace {

constexpr uint32_t kProtocolVersion = 1;

}  // namespace

absl::StatusOr<std::shared_ptr<FileTaker>> JoinFetch(const AgentSessions& agents,
                                                     const Fetches& fetches,
                                                     const agent::v1::SendFilesHello& hello,
                                                     std::shared_ptr<FileFeed> feed) {
  if (absl::Status status = CheckProtocol(hello.protocol_version(), kProtocolVersion); !status.ok())
    return status;
  if (absl::Status status = CheckConnected(agents, hello.cluster(), hello.journal_id());
      !status.ok())
    return status;
  std::shared_ptr<FileTaker> taker = fetches.Find(hello.ticket());
  if (taker == nullptr || !taker->Attach(std::move(feed))) {
    return contract::Error(absl::StatusCode::kNotFound, "NO_SUCH_TICKET",
                           "nobody waits for these files any more");
  }
  return taker;
}

}  // namespace muster::broker
