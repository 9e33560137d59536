#include "agents/kubernetes/api/lane_sink.h"

#include <utility>

#include "sync/mutex.h"

namespace muster::kubernetes {

struct LaneSink::State {
  State(std::unique_ptr<HttpSink> other, HttpLoop* http) : sink(std::move(other)), loop(*http) {}

  // Runs on the lane.
  void Take(const std::string& bytes) {
    if (!is_unwanted && !sink->OnBytes(bytes)) {
      is_unwanted = true;
      loop.Cancel(id);
    }
    const MutexLock lock(mutex);
    waiting_bytes -= bytes.size();
    if (is_paused && waiting_bytes < kMaxWaitingBytes / 2) {
      is_paused = false;
      loop.Resume(id);
    }
  }

  const std::unique_ptr<HttpSink> sink;  // of the lane
  bool is_unwanted = false;              // of the lane
  HttpLoop& loop;
  HttpCallId id = 0;  // set once, before anything is taken
  Mutex mutex;
  size_t waiting_bytes ABSL_GUARDED_BY(mutex) = 0;
  bool is_paused ABSL_GUARDED_BY(mutex) = false;
};

LaneSink::LaneSink(std::unique_ptr<HttpSink> sink, agents::WorkerLane* lane, HttpLoop* loop)
    : lane_(*lane), state_(std::make_shared<State>(std::move(sink), loop)) {}

void LaneSink::OnStart(HttpCallId id) { state_->id = id; }

void LaneSink::OnSentAgain() {
  lane_.Post([state = state_] { state->sink->OnSentAgain(); });
}

void LaneSink::OnStatus(int status, const std::map<std::string, std::string>& headers) {
  lane_.Post([state = state_, status, headers] { state->sink->OnStatus(status, headers); });
}

bool LaneSink::MayTake() {
  const MutexLock lock(state_->mutex);
  state_->is_paused = state_->waiting_bytes >= kMaxWaitingBytes;
  return !state_->is_paused;
}

bool LaneSink::OnBytes(std::string_view bytes) {
  {
    const MutexLock lock(state_->mutex);
    state_->waiting_bytes += bytes.size();
  }
  lane_.Post([state = state_, text = std::string(bytes)] { state->Take(text); });
  return true;
}

void LaneSink::OnEnd(const absl::Status& status) {
  lane_.Post([state = state_, status] { state->sink->OnEnd(status); });
}

}  // namespace muster::kubernetes
