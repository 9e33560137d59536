#include "tests/bench/tools/watcher.h"

#include <google/protobuf/wire_format_lite.h>

#include "absl/time/clock.h"
#include "muster/v1/jobs_service.pb.h"
#include "rpc/address.h"

namespace muster::bench {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr absl::Duration kLook = absl::Milliseconds(1);

// Calls `take` for each field, to read it or to skip it. False: these are no fields.
template <typename Take>
bool ReadFields(CodedInputStream* in, Take take) {
  while (const uint32_t tag = in->ReadTag()) {
    if (!take(WireFormatLite::GetTagFieldNumber(tag), tag, in)) return false;
  }
  return in->ConsumedEntireMessage();
}

// Calls `take` for a message within another one.
template <typename Take>
bool ReadMessage(CodedInputStream* in, Take take) {
  uint32_t size = 0;
  if (!in->ReadVarint32(&size)) return false;
  const auto limit = in->PushLimit(static_cast<int>(size));
  const bool ok = take(in);
  in->PopLimit(limit);
  return ok;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> NewChannel(const Load& load) {
  const auto address = rpc::ParseAddress(load.address);
  if (!address.ok()) return address.status();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address->target, grpc::InsecureChannelCredentials(), arguments);
}

// Sends an empty WatchJobsRequest, which asks for all jobs, from now on.
Watcher::Watcher(const std::shared_ptr<grpc::Channel>& channel, bool reads)
    : reads_(reads), stub_(channel) {
  const grpc::Slice empty;
  request_ = grpc::ByteBuffer(&empty, 1);
  stub_.PrepareBidiStreamingCall(&context_, "/muster.v1.JobsService/WatchJobs", {}, this);
  StartWriteLast(&request_, {});
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
  grpc::Slice bytes;
  if (!response_.DumpToSingleSlice(&bytes).ok()) return;
  CodedInputStream in(bytes.begin(), static_cast<int>(bytes.size()));
  // A watcher that cannot read a message stands still, and is found not to be complete.
  if (TakeMessage(&in) && reads_) StartRead(&response_);
}

bool Watcher::TakeMessage(CodedInputStream* in) {
  return ReadFields(in, [this](int field, uint32_t tag, CodedInputStream* message) {
    if (field == v1::WatchJobsResponse::kChangesFieldNumber)
      return ReadMessage(message, [this](CodedInputStream* change) { return TakeChange(change); });
    if (field == v1::WatchJobsResponse::kHeartbeatFieldNumber)
      return ReadMessage(message, [this](CodedInputStream* beat) { return TakeHeartbeat(beat); });
    return WireFormatLite::SkipField(message, tag);
  });
}

bool Watcher::TakeChange(CodedInputStream* in) {
  uint64_t sequence = 0;
  bool is_step = false;
  const bool ok = ReadFields(in, [&](int field, uint32_t tag, CodedInputStream* change) {
    if (field == v1::JobChange::kSequenceFieldNumber) return change->ReadVarint64(&sequence);
    is_step = is_step || field == v1::JobChange::kTransitionFieldNumber;
    return WireFormatLite::SkipField(change, tag);
  });
  if (is_step) {
    std::lock_guard lock(mutex_);
    steps_.Add(sequence);
  }
  up_to_ = sequence;
  ++changes_;
  return ok;
}

bool Watcher::TakeHeartbeat(CodedInputStream* in) {
  uint64_t sequence = 0;
  const bool ok = ReadFields(in, [&](int field, uint32_t tag, CodedInputStream* beat) {
    if (field == v1::WatchHeartbeat::kSequenceFieldNumber) return beat->ReadVarint64(&sequence);
    return WireFormatLite::SkipField(beat, tag);
  });
  up_to_ = sequence;
  if (!has_begun_) begin_ = sequence;
  has_begun_ = true;
  return ok;
}

void Watcher::OnDone(const grpc::Status&) { is_done_ = true; }

}  // namespace muster::bench
