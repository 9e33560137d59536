// Makes the streams between an agent and its broker: control, log bytes, and files of runs. Each
// has a connection of its own, so that a flood of output delays no cancel.
//
// Links may be used from any thread, and must not be destroyed by their own callbacks. Destroying
// one ends the call and waits until no callback runs.
#ifndef MUSTER_AGENTS_CORE_BROKER_LINK_H_
#define MUSTER_AGENTS_CORE_BROKER_LINK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/core/identity.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/agent/v1/file_link.pb.h"
#include "muster/agent/v1/log_link.pb.h"
#include "muster/agent/v1/secret_link.pb.h"

namespace grpc {
class Channel;
}

namespace muster::agents {

// AgentLinkService.Connect. The caller sends the hello.
class ControlLink {
 public:
  // Called by gRPC's threads; they must only hand over. `on_end` comes last, and once.
  struct Callbacks {
    std::function<void(agent::v1::ConnectResponse)> on_message;
    std::function<void(absl::Status)> on_end;
  };
  virtual ~ControlLink() = default;
  enum class Sent {
    kYes,
    kFull,  // the broker reads too slowly; give the link up
    kOver,  // the stream has ended; on_end tells why
  };
  virtual Sent Send(agent::v1::ConnectRequest message) = 0;
  // Called once for each message: a few that wait are enough, the rest stays with the broker.
  virtual void Handled() = 0;
};

// LogLinkService.Push. The caller sends the hello.
class PushLink {
 public:
  struct Callbacks {
    std::function<void(agent::v1::PushResponse)> on_answer;
    std::function<void()> on_room;  // after a Send that was refused, and at other times
    std::function<void(absl::Status)> on_end;
  };
  virtual ~PushLink() = default;
  // False: no room now; try again after on_room or on_end.
  virtual bool Send(const agent::v1::PushRequest& message) = 0;
};

// FileLink.SendFiles. One thread sends; any may cancel.
class FilesLink {
 public:
  virtual ~FilesLink() = default;
  // Waits until there is room. False: the broker wants no more.
  virtual bool Send(const agent::v1::SendFilesRequest& message) = 0;
  // Ends the messages, and waits for the broker's answer to them.
  virtual absl::Status Finish() = 0;
  // Ends what waits.
  virtual void Cancel() = 0;
};

// Makes links to one broker. Every link dials anew, so that an old connection's back-off delays no
// new one.
class Dialer {
 public:
  explicit Dialer(BrokerEnd broker);
  ~Dialer();

  std::unique_ptr<ControlLink> DialControl(ControlLink::Callbacks callbacks);
  std::unique_ptr<PushLink> DialPush(PushLink::Callbacks callbacks);
  std::unique_ptr<FilesLink> DialFiles();
  // SecretLinkService.FetchRunSecrets. Waits for the answer, up to 20 s.
  absl::StatusOr<agent::v1::FetchRunSecretsResponse> FetchSecrets(const std::string& cluster,
                                                                  const std::string& journal_id,
                                                                  const std::string& run_key);

 private:
  const BrokerEnd broker_;
  // Nobody uses it: as long as there is one channel, gRPC keeps its threads, no matter who drops
  // the other channels.
  const std::shared_ptr<grpc::Channel> keeper_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_BROKER_LINK_H_
