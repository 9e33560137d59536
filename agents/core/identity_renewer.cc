#include "agents/core/identity_renewer.h"

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "muster/agent/v1/enrollment.grpc.pb.h"
#include "rpc/status.h"

namespace muster::agents {
namespace {

// The clock may be set meanwhile.
constexpr absl::Duration kLongestWait = absl::Minutes(1);
constexpr absl::Duration kShortestPause = absl::Seconds(1);
constexpr absl::Duration kCallPatience = absl::Seconds(30);

absl::Duration LifeOf(const pki::Validity& validity) {
  const absl::Duration whole = validity.until - validity.from;
  return whole > pki::kClockSkew ? whole - pki::kClockSkew : whole;
}

}  // namespace

IdentityRenewer::IdentityRenewer(BrokerEnd broker) : broker_(std::move(broker)) {
  if (!broker_.tls_directory.empty()) thread_ = std::thread([this] { Run(); });
}

IdentityRenewer::~IdentityRenewer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void IdentityRenewer::Run() {
  // After a failure it tries soon enough to try many times in the third that is left.
  absl::Duration pause = kShortestPause;
  while (true) {
    absl::Duration wait = UntilDue();
    if (wait <= absl::ZeroDuration()) {
      if (const absl::Status status = Renew(); status.ok()) {
        LogEvent(spdlog::level::info, "certificate_renewed");
        pause = kShortestPause;
        wait = UntilNextDue();
      } else {
        LogEvent(spdlog::level::warn, "certificate_not_renewed",
                 {{"error", std::string(ToStd(status.message()))},
                  {"retry_in", absl::FormatDuration(pause)}});
        wait = pause;
        pause = std::min(2 * pause, kLongestWait);
      }
    }
    if (!Wait(std::min(wait, kLongestWait))) return;
  }
}

absl::Duration IdentityRenewer::UntilNextDue() const {
  const absl::Duration wait = UntilDue();
  if (wait > absl::ZeroDuration()) return wait;
  LogEvent(spdlog::level::warn, "certificate_due_at_once",
           {{"cause", "the clock here is ahead of the broker's by most of the certificate's life"},
            {"retry_in", absl::FormatDuration(kLongestWait)}});
  return kLongestWait;
}

absl::Duration IdentityRenewer::UntilDue() const {
  const absl::StatusOr<Identity> identity = ReadIdentity(broker_.tls_directory);
  if (!identity.ok()) return kLongestWait;  // connections say what is wrong
  const absl::StatusOr<pki::Certificate> read = pki::ReadCertificate(identity->own.certificate);
  if (!read.ok()) return kLongestWait;
  return read->validity.until - LifeOf(read->validity) / 3 - absl::Now();
}

absl::Status IdentityRenewer::Renew() {
  absl::StatusOr<Identity> identity = ReadIdentity(broker_.tls_directory);
  if (!identity.ok()) return identity.status();
  const std::string key = pki::MakeKey();
  const absl::StatusOr<std::string> asked = pki::MakeRequest(key);
  if (!asked.ok()) return asked.status();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub = agent::v1::EnrollmentService::NewStub(
      grpc::CreateCustomChannel(broker_.target, CredentialsFor(broker_), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallPatience));
  agent::v1::RenewRequest request;
  request.set_certificate_request(*asked);
  agent::v1::RenewResponse response;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return absl::CancelledError("the agent ends");
    call_ = &context;
  }
  const grpc::Status called = stub->Renew(&context, request, &response);
  {
    const MutexLock lock(mutex_);
    call_ = nullptr;
  }
  if (!called.ok()) return rpc::FromGrpc(called);
  identity->own = {key, response.certificate()};
  if (absl::Status status = pki::CheckPair(identity->own); !status.ok()) return status;
  return WriteIdentity(broker_.tls_directory, *identity);
}

bool IdentityRenewer::Wait(absl::Duration time) {
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(time);
  MutexLock lock(mutex_);
  while (!stopping_ && lock.WaitUntil(changed_, due)) {
  }
  return !stopping_;
}

}  // namespace muster::agents
