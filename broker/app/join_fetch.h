// An agent's stream with files finds the client that waits for them.
#ifndef MUSTER_BROKER_APP_JOIN_FETCH_H_
#define MUSTER_BROKER_APP_JOIN_FETCH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "broker/app/fetches.h"
#include "muster/agent/v1/file_link.pb.h"

namespace muster::broker {

class AgentSessions;

// Attaches the stream to the client whose ticket the hello names. FAILED_PRECONDITION: another
// protocol version, or not the agent that is connected. NOT_FOUND, NO_SUCH_TICKET: nobody waits for
// the files any more.
absl::StatusOr<std::shared_ptr<FileTaker>> JoinFetch(const AgentSessions& agents,
                                                     const Fetches& fetches,
                                                     const agent::v1::SendFilesHello& hello,
                                                     std::shared_ptr<FileFeed> feed);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_JOIN_FETCH_H_
