#include "tests/unit/rpc/harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/time/clock.h"
#include "broker/logs/archive.h"
#include "google/protobuf/util/time_util.h"

namespace muster::broker {

absl::Status GatedStore::Commit(absl::Span<const core::Change> changes) {
  {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_; });
    --waiting_;
    passed_ = true;
  }
  changed_.notify_all();
  return MemoryStore::Commit(changes);
}

absl::StatusOr<std::vector<v1::Job>> GatedStore::GetJobs(const store::Scope& scope,
                                                         absl::Span<const uint64_t> ids) const {
  if (reads_of_many_fail_) return absl::DataLossError("the disk cannot be read");
  return MemoryStore::GetJobs(scope, ids);
}

void GatedStore::CloseGate() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

void GatedStore::OpenGate() {
  {
    std::lock_guard lock(mutex_);
    closed_ = false;
  }
  changed_.notify_all();
}

void GatedStore::AwaitCommit() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_ > 0; });
}

void GatedStore::AwaitFirstCommit() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return passed_; });
}

std::unique_ptr<grpc::ClientContext> Call(int seconds) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(seconds)));
  return context;
}

v1::JobSpec TrueSpec() {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("true");
  return spec;
}

v1::SubmitJobRequest SubmitTrue(const std::string& request_id) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = TrueSpec();
  request.set_request_id(request_id);
  return request;
}

std::unique_ptr<files::FileStore> OpenFiles(const std::filesystem::path& directory,
                                            std::function<absl::Time()> now) {
  auto files = files::FileStore::Open(directory, {.keep_free_bytes = 0}, std::move(now));
  EXPECT_TRUE(files.ok()) << files.status();
  return files.ok() ? *std::move(files) : nullptr;
}

TestBroker::TestBroker(std::function<void(BrokerOptions&)> adjust) {
  char name[] = "/tmp/muster-rpc-XXXXXX";
  directory_ = mkdtemp(name);
  BrokerOptions options;
  options.socket_path = directory_ / "broker.sock";
  options.token_file = directory_ / "tokens.db";
  options.secrets = {.database = directory_ / "secrets.db",
                     .key_file = directory_ / "secrets.key",
                     .credential = {},
                     .now = {}};
  options.project_file = directory_ / "projects.db";
  options.audit.log.path = directory_ / "audit.db";
  if (adjust) adjust(options);
  auto archive = logs::Archive::Open(directory_ / "logs", {}, absl::Now);
  EXPECT_TRUE(archive.ok()) << archive.status();
  auto store = std::make_unique<GatedStore>();
  store_ = store.get();
  auto broker = Broker::Start(
      options, std::move(store), *std::move(archive),
      OpenFiles(directory_ / "files",
                [this] { return absl::Now() + absl::Seconds(files_ahead_s_.load()); }),
      [this](const absl::Status& s) {
        std::lock_guard lock(mutex_);
        failure_ = s;
        changed_.notify_all();
      });
  EXPECT_TRUE(broker.ok()) << broker.status();
  broker_ = *std::move(broker);
  store_->AwaitFirstCommit();
  jobs_ = v1::JobsService::NewStub(NewChannel());
  clusters_ = v1::ClustersService::NewStub(NewChannel());
  files_ = v1::FilesService::NewStub(NewChannel());
}

TestBroker::~TestBroker() {
  store_->OpenGate();
  broker_.reset();
  std::filesystem::remove_all(directory_);
}

std::shared_ptr<grpc::Channel> TestBroker::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + (directory_ / "broker.sock").string(),
                                   grpc::InsecureChannelCredentials(), arguments);
}

absl::Status TestBroker::AwaitFailure() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failure_.has_value(); });
  return *failure_;
}

uint64_t TestBroker::Submit(const v1::SubmitJobRequest& request) {
  v1::SubmitJobResponse response;
  const grpc::Status status = jobs_->SubmitJob(Call().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.job_id();
}

v1::Job TestBroker::Get(uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  v1::GetJobResponse response;
  const grpc::Status status = jobs_->GetJob(Call().get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.job();
}

FakeAgent::FakeAgent(TestBroker& broker, const std::string& cluster)
    : cluster_(cluster),
      stub_(agent::v1::AgentLinkService::NewStub(broker.NewChannel())),
      stream_(stub_->Connect(context_.get())) {}

FakeAgent::~FakeAgent() {
  if (finished_) return;
  context_->TryCancel();
  Finish();
}

bool FakeAgent::Connect(std::function<void(agent::v1::AgentHello&)> adjust) {
  agent::v1::ConnectRequest request;
  agent::v1::AgentHello& hello = *request.mutable_hello();
  hello.set_protocol_version(1);
  hello.set_cluster(cluster_);
  hello.set_kind(v1::CLUSTER_KIND_MACHINES);
  hello.set_agent_version("test");
  hello.set_journal_id(journal_id);
  hello.set_max_active_runs(1000);
  hello.mutable_inventory()->set_identity("machine-" + cluster_);
  v1::Pool& pool = *hello.mutable_inventory()->add_pools();
  pool.set_name("default");
  pool.set_is_default(true);
  pool.set_available(true);
  v1::NodeGroup& group = *pool.add_node_groups();
  group.set_count(4);
  group.set_usable_count(4);
  group.set_cpus(64);
  group.set_memory_bytes(uint64_t{256} << 30);
  if (adjust) adjust(hello);
  if (!Write(request)) return false;
  const std::optional<agent::v1::ConnectResponse> response = Read();
  if (!response || !response->has_welcome()) return false;
  welcome_ = response->welcome();
  return true;
}

std::optional<agent::v1::ConnectResponse> FakeAgent::Read() {
  agent::v1::ConnectResponse response;
  if (stream_->Read(&response)) return response;
  return std::nullopt;
}

std::vector<agent::v1::Assignment> FakeAgent::ReadAssignments(int count) {
  std::vector<agent::v1::Assignment> assignments;
  while (static_cast<int>(assignments.size()) < count) {
    const std::optional<agent::v1::ConnectResponse> response = Read();
    if (!response) {
      ADD_FAILURE() << "the stream ended after " << assignments.size() << " assignments";
      break;
    }
    for (const auto& assignment : response->assignments().assignments()) {
      assignments.push_back(assignment);
    }
  }
  return assignments;
}

void FakeAgent::AwaitAck(uint64_t sequence) {
  while (const std::optional<agent::v1::ConnectResponse> response = Read()) {
    if (response->has_event_ack() && response->event_ack().sequence() >= sequence) return;
  }
  ADD_FAILURE() << "the stream ended before event " << sequence << " was acknowledged";
}

uint64_t FakeAgent::Report(const std::string& run_key, v1::RunState state, bool logs_complete,
                           absl::Duration ended_ago, const std::vector<std::string>& nodes) {
  agent::v1::ConnectRequest request;
  agent::v1::RunEvent& event = *request.mutable_events()->add_events();
  event.set_sequence(next_sequence);
  event.set_run_key(run_key);
  event.set_state(state);
  event.set_logs_complete(logs_complete);
  event.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  event.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
  *event.mutable_evidence()->mutable_observed_at() =
      google::protobuf::util::TimeUtil::GetCurrentTime();
  if (state == v1::RUN_STATE_SUCCEEDED) {
    *event.mutable_end_time() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
        absl::ToUnixNanos(absl::Now() - ended_ago));
    event.mutable_exit()->set_code(0);
  }
  EXPECT_TRUE(Write(request));
  return next_sequence++;
}

void FakeAgent::Succeed(const std::string& run_key) {
  Report(run_key, v1::RUN_STATE_LAUNCHING);
  Report(run_key, v1::RUN_STATE_RUNNING);
  Report(run_key, v1::RUN_STATE_SUCCEEDED);
  AwaitAck(Report(run_key, v1::RUN_STATE_SUCCEEDED, true));
}

grpc::Status FakeAgent::Finish() {
  finished_ = true;
  stream_->WritesDone();
  agent::v1::ConnectResponse ignored;
  while (stream_->Read(&ignored)) {
  }
  return stream_->Finish();
}

}  // namespace muster::broker
