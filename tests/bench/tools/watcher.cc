#include "tests/bench/tools/watcher.h"

#include "absl/time/clock.h"
#include "clients/cpp/address.h"

namespace muster::bench {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<v1::JobsService::Stub>> NewJobsStub(const Load& load) {
  const auto address = client::ParseAddress(load.address);
  if (!address.ok()) return address.status();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::JobsService::NewStub(
      grpc::CreateCustomChannel(address->target, grpc::InsecureChannelCredentials(), arguments));
}

Watcher::Watcher(v1::JobsService::Stub* stub, bool reads) : reads_(reads) {
  stub->async()->WatchJobs(&context_, &request_, this);
  StartRead(&response_);
  StartCall();
}

Watcher::~Watcher() {
  context_.TryCancel();
  while (!is_done_) absl::SleepFor(kLook);
}

absl::Status Watcher::AwaitBegin(absl::Time give_up) const {
  while (!has_begun_) {
    if (is_done_ || absl::Now() > give_up) return absl::UnavailableError("a watch did not begin");
    absl::SleepFor(kLook);
  }
  return absl::OkStatus();
}

Steps Watcher::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

void Watcher::OnReadDone(bool ok) {
  if (!ok) return;
  if (response_.has_change()) {
    const v1::JobChange& change = response_.change();
    if (change.has_transition()) {
      std::lock_guard lock(mutex_);
      steps_.Add(change.sequence());
    }
    up_to_ = change.sequence();
    ++changes_;
  } else {
    up_to_ = response_.heartbeat().sequence();
    if (!has_begun_) begin_ = up_to_.load();
    has_begun_ = true;
  }
  if (reads_) StartRead(&response_);
}

void Watcher::OnDone(const grpc::Status&) { is_done_ = true; }

}  // namespace muster::bench
