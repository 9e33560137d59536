#include "tests/bench/tools/submitter.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "muster/v1/jobs_service.grpc.pb.h"
#include "rpc/address.h"
#include "rpc/status.h"

namespace muster::bench {
namespace {

// The least memory that a job may ask for, in bytes.
constexpr uint64_t kLeastMemory = uint64_t{1} << 20;

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const std::string& ca) {
  if (ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = ca;
  return grpc::SslCredentials(trust);
}

class Submitter {
 public:
  // `ca` and `token` are those of a broker over TLS; empty if it is another one.
  Submitter(const Load& load, const std::string& target, const std::string& ca, std::string token)
      : load_(load),
        token_(std::move(token)),
        stub_(v1::JobsService::NewStub(grpc::CreateChannel(target, CredentialsFor(ca)))),
        calls_(load.in_flight) {}

  absl::StatusOr<Submitted> Run() {
    start_ = absl::Now();
    end_ = load_.jobs > 0 ? absl::InfiniteFuture() : start_ + absl::Seconds(load_.seconds);
    for (Call& call : calls_) Start(&call);
    std::unique_lock lock(mutex_);
    over_.wait(lock, [this] { return in_flight_ == 0; });
    if (!failure_.ok()) return failure_;
    result_.elapsed = absl::Now() - start_;
    return std::move(result_);
  }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    v1::SubmitJobRequest request;
    v1::SubmitJobResponse response;
    v1::SubmitJobsRequest requests;
    v1::SubmitJobsResponse responses;
    absl::Time start;
    int jobs = 0;
  };

  // Begins the next call, if there is to be one.
  void Start(Call* call) {
    uint64_t first;
    {
      std::lock_guard lock(mutex_);
      const bool enough = load_.jobs > 0 && started_ >= load_.jobs;
      if (enough || !failure_.ok() || absl::Now() >= end_) return;
      first = started_;
      started_ += load_.batch;
      ++in_flight_;
    }
    call->context = std::make_unique<grpc::ClientContext>();
    if (!token_.empty()) call->context->AddMetadata("authorization", "Bearer " + token_);
    call->jobs = load_.batch;
    call->start = absl::Now();
    auto done = [this, call](const grpc::Status& status) { OnDone(call, status); };
    if (load_.batch == 1) {
      FillIn(first, &call->request);
      stub_->async()->SubmitJob(call->context.get(), &call->request, &call->response, done);
      return;
    }
    call->requests.Clear();
    for (int i = 0; i < load_.batch; ++i) FillIn(first + i, call->requests.add_requests());
    stub_->async()->SubmitJobs(call->context.get(), &call->requests, &call->responses, done);
  }

  void FillIn(uint64_t number, v1::SubmitJobRequest* request) const {
    *request->mutable_spec() = SampleSpec(number);
    if (load_.different)
      request->mutable_spec()->mutable_resources()->set_memory_bytes(kLeastMemory + number);
    request->set_request_id(client::NewRequestId());
  }

  void OnDone(Call* call, const grpc::Status& status) {
    {
      std::lock_guard lock(mutex_);
      if (status.ok()) {
        result_.jobs += call->jobs;
        result_.call_times.Add(absl::Now() - call->start);
      } else if (failure_.ok()) {
        failure_ = rpc::FromGrpc(status);
      }
    }
    Start(call);
    std::lock_guard lock(mutex_);
    if (--in_flight_ == 0) over_.notify_all();
  }

  const Load load_;
  const std::string token_;
  const std::unique_ptr<v1::JobsService::Stub> stub_;
  std::vector<Call> calls_;
  absl::Time start_;
  absl::Time end_;

  std::mutex mutex_;
  std::condition_variable over_;
  uint64_t started_ = 0;
  int in_flight_ = 0;
  absl::Status failure_;
  Submitted result_;
};

}  // namespace

absl::StatusOr<std::string> Contents(const std::string& path) {
  if (path.empty()) return std::string();
  constexpr size_t kMaxBytes = 1 << 20;
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return text.status();
  return std::string(absl::StripAsciiWhitespace(ToAbsl(*text)));
}

void Print(Submitted result) {
  fmt::print("{{\"per_s\": {:.1f}, \"p50_us\": {:.0f}, \"p99_us\": {:.0f}}}\n",
             result.jobs / absl::ToDoubleSeconds(result.elapsed),
             absl::ToDoubleMicroseconds(result.call_times.Percentile(0.5)),
             absl::ToDoubleMicroseconds(result.call_times.Percentile(0.99)));
}

absl::StatusOr<Submitted> RunSubmits(const Load& load) {
  absl::StatusOr<rpc::Address> address = rpc::ParseAddress(load.address);
  if (!address.ok()) return address.status();
  const absl::StatusOr<std::string> ca = Contents(load.ca_file);
  if (!ca.ok()) return ca.status();
  absl::StatusOr<std::string> token = Contents(load.token_file);
  if (!token.ok()) return token.status();
  return Submitter(load, address->target, *ca, *std::move(token)).Run();
}

absl::Status Submit(const Load& load) {
  absl::StatusOr<Submitted> result = RunSubmits(load);
  if (!result.ok()) return result.status();
  Print(*std::move(result));
  return absl::OkStatus();
}

}  // namespace muster::bench
