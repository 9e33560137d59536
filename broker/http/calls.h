// Calls of the broker's own gRPC server, with messages as bytes.
//
// The functions that a call is given are called on gRPC's threads, or within the call that begins
// it. Every method may be called by any thread.
#ifndef MUSTER_BROKER_HTTP_CALLS_H_
#define MUSTER_BROKER_HTTP_CALLS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace grpc {
class Channel;
}

namespace muster::http {

// These headers are sent with the call.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct CallStart {
  std::string path;
  Metadata metadata = {};
  absl::Time deadline = absl::InfiniteFuture();
  std::vector<std::string> messages;  // of the request; a unary call has one
};

class Call {
 public:
  virtual ~Call() = default;
  // Ends it with CANCELLED, unless it has ended.
  virtual void Cancel() = 0;
  // Says that the last message of a stream was processed, so that the next one may come.
  virtual void ReadOn() = 0;
};

struct CallEvents {
  // Brings a message of a stream. ReadOn asks for the next one; the first comes by itself.
  std::function<void(std::string message)> message;
  // Is called once, as the last. `answer` is that of a unary call that is OK.
  std::function<void(const absl::Status& status, std::string answer)> done;
};

class Calls {
 public:
  explicit Calls(std::shared_ptr<grpc::Channel> channel);
  ~Calls();

  std::shared_ptr<Call> StartUnary(CallStart start, CallEvents events) const;
  std::shared_ptr<Call> StartStream(CallStart start, CallEvents events) const;

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_CALLS_H_
