// Takes what a call brings on a thread of one's own, so that a sink that writes or parses holds up
// no other call.
#ifndef MUSTER_AGENTS_KUBERNETES_API_LANE_SINK_H_
#define MUSTER_AGENTS_KUBERNETES_API_LANE_SINK_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "agents/core/worker_lane.h"
#include "agents/kubernetes/api/http_loop.h"

namespace muster::kubernetes {

// Most bytes of one call that wait for the lane. The server waits meanwhile.
inline constexpr size_t kMaxWaitingBytes = 1 << 20;

// The loop's thread calls this, and this has the lane call the other sink. The lane has one thread,
// and both outlive the call.
class LaneSink : public HttpSink {
 public:
  LaneSink(std::unique_ptr<HttpSink> sink, agents::WorkerLane* lane, HttpLoop* loop);

  void OnStart(HttpCallId id) override;
  void OnSentAgain() override;
  void OnStatus(int status, const std::map<std::string, std::string>& headers) override;
  bool MayTake() override;
  bool OnBytes(std::string_view bytes) override;
  void OnEnd(const absl::Status& status) override;

 private:
  struct State;

  agents::WorkerLane& lane_;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_LANE_SINK_H_
