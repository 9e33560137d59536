#include "tests/unit/agents/fake_broker.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "muster/agent/v1/agent_link.grpc.pb.h"
#include "muster/agent/v1/log_link.grpc.pb.h"
#include "rpc/status.h"

namespace muster::agents {
namespace {

using ControlStream =
    grpc::ServerReaderWriter<agent::v1::ConnectResponse, agent::v1::ConnectRequest>;

class ControlService : public agent::v1::AgentLinkService::Service {
 public:
  explicit ControlService(Shared<BrokerState>* state) : state_(*state) {}

  grpc::Status Connect(grpc::ServerContext*, ControlStream* stream) override {
    agent::v1::ConnectRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    const absl::Status refusal = state_.With([&](BrokerState& state) {
      state.hellos.push_back(request.hello());
      return state.refusal;
    });
    if (!refusal.ok()) return rpc::ToGrpc(refusal);
    Greet(request.hello(), stream);
    while (stream->Read(&request)) {
      agent::v1::ConnectResponse ack;
      const bool answers = state_.With([&](BrokerState& state) {
        Apply(request, &state);
        ack.mutable_event_ack()->set_sequence(state.events.size());
        return !state.silent;
      });
      if (answers) Write(stream, ack);
    }
    std::lock_guard lock(mutex_);
    if (stream_ == stream) stream_ = nullptr;
    return grpc::Status::OK;
  }

  void Send(const agent::v1::ConnectResponse& message) {
    std::lock_guard lock(mutex_);
    if (stream_ != nullptr) stream_->Write(message);
  }

 private:
  void Greet(const agent::v1::AgentHello& hello, ControlStream* stream) {
    agent::v1::ConnectResponse welcome;
    agent::v1::ConnectResponse assignments;
    std::set<std::string> held;
    for (const agent::v1::HeldRun& run : hello.runs()) held.insert(run.run_key());
    state_.With([&](BrokerState& state) {
      welcome.mutable_welcome()->set_instance(state.instance);
      welcome.mutable_welcome()->set_broker_epoch(1);
      welcome.mutable_welcome()->set_agent_epoch(state.hellos.size());
      welcome.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(state.heartbeat_ms *
                                                                         1'000'000 % 1'000'000'000);
      welcome.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(state.heartbeat_ms /
                                                                           1000);
      welcome.mutable_welcome()->set_acked_event_sequence(state.events.size());
      for (const auto& [key, assignment] : state.wanted) {
        if (held.contains(key) || state.LogsComplete(key)) continue;
        *assignments.mutable_assignments()->add_assignments() = assignment;
      }
    });
    {
      std::lock_guard lock(mutex_);
      stream_ = stream;
    }
    Write(stream, welcome);
    Write(stream, assignments);
    state_.With([](BrokerState& state) { ++state.connections; });
  }

  static void Apply(const agent::v1::ConnectRequest& request, BrokerState* state) {
    if (request.has_heartbeat()) state->heartbeats.push_back(request.heartbeat());
    if (request.has_answer()) state->answers.push_back(request.answer());
    for (const agent::v1::RunEvent& event : request.events().events()) {
      if (event.sequence() <= state->events.size()) {
        ++state->repeated_events;
      } else if (event.sequence() == state->events.size() + 1) {
        state->events.push_back(event);
      } else {
        state->gap = true;
      }
    }
  }

  void Write(ControlStream* stream, const agent::v1::ConnectResponse& message) {
    std::lock_guard lock(mutex_);
    stream->Write(message);
  }

  Shared<BrokerState>& state_;
  std::mutex mutex_;  // of writes
  ControlStream* stream_ = nullptr;
};

class LogService : public agent::v1::LogLinkService::Service {
 public:
  explicit LogService(Shared<BrokerState>* state) : state_(*state) {}

  grpc::Status Push(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<agent::v1::PushResponse, agent::v1::PushRequest>* stream) override {
    agent::v1::PushRequest request;
    while (stream->Read(&request)) {
      if (!request.has_chunk()) continue;
      const agent::v1::LogChunk& chunk = request.chunk();
      agent::v1::PushResponse answer;
      answer.set_run_key(chunk.run_key());
      answer.set_rank(chunk.rank());
      answer.set_stream(chunk.stream());
      state_.With([&](BrokerState& state) {
        std::string& log = state.logs[chunk.run_key()];
        if (chunk.offset() <= log.size()) log.replace(chunk.offset(), log.npos, chunk.data());
        answer.set_next_offset(log.size());
        answer.set_complete(chunk.end());
        if (chunk.end()) state.complete[chunk.run_key()] = true;
      });
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }

 private:
  Shared<BrokerState>& state_;
};

}  // namespace

class FakeBroker::Impl {
 public:
  Impl(const std::string& target, Shared<BrokerState>* state) : control_(state), logs_(state) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target, grpc::InsecureServerCredentials());
    builder.RegisterService(&control_);
    builder.RegisterService(&logs_);
    server_ = builder.BuildAndStart();
  }
  // Ends at once, as a process that is killed.
  ~Impl() { server_->Shutdown(std::chrono::system_clock::now()); }

  void Send(const agent::v1::ConnectResponse& message) { control_.Send(message); }

 private:
  ControlService control_;
  LogService logs_;
  std::unique_ptr<grpc::Server> server_;
};

FakeBroker::FakeBroker(const std::string& target, Shared<BrokerState>* state)
    : impl_(std::make_unique<Impl>(target, state)) {}
FakeBroker::~FakeBroker() = default;
void FakeBroker::Send(const agent::v1::ConnectResponse& message) { impl_->Send(message); }

}  // namespace muster::agents
