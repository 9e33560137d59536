#include "broker/rpc/watch_jobs.h"

#include <grpc/slice.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "broker/engine/change_tail.h"
#include "broker/rpc/catch_up.h"
#include "broker/rpc/pull_stream.h"
#include "broker/rpc/requests.h"
#include "broker/store/store.h"
#include "contract/states.h"

namespace muster::broker {
namespace {

// What one stream takes from the tail at a time, and how much of it it looks through for that. The
// bytes are shared with all who send them.
constexpr size_t kMaxEntriesPerStep = 512;
constexpr size_t kMaxBytesPerStep = 256 << 10;

// Bytes that live as long as somebody sends them.
grpc::ByteBuffer ToBuffer(ChangeBytes bytes) {
  auto owner = std::make_unique<ChangeBytes>(std::move(bytes));
  void* const begin = const_cast<char*>((*owner)->data());  // gRPC does not write there
  const size_t size = (*owner)->size();
  const grpc::Slice slice(
      begin, size, [](void* kept) { delete static_cast<ChangeBytes*>(kept); }, owner.release());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer ToBuffer(const v1::WatchJobsResponse& message) {
  return ToBuffer(std::make_shared<const std::string>(message.SerializeAsString()));
}

// Whether a filter takes the job of a change.
bool Takes(const contract::Filter& filter, const ChangeBytes& change) {
  v1::WatchJobsResponse message;
  return change != nullptr && message.ParseFromString(*change) &&
         filter.Matches(message.change().job());
}

class WatchStream final : public PullStream<grpc::ByteBuffer> {
 public:
  WatchStream(const Context& context, Watch watch)
      : PullStream(context),
        watch_(std::move(watch)),
        jobs_(watch_.jobs.begin(), watch_.jobs.end()),
        catch_up_(context.store, watch_.jobs, watch_.filter) {}

  // Wakes may come from here on; call before the first read, so that none is missed.
  void Hook() {
    context_.changes->Join();
    context_.watches->Add(shared_from_this(), watch_.jobs);
    is_hooked_ = true;
  }

 private:
  Result Step() override {
    Result result;
    absl::Status status = began_ ? absl::OkStatus() : Start(&result);
    if (status.ok()) status = ReadOn(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

  absl::Status Start(Result* result) {
    const uint64_t now = context_.changes->last();
    position_ = watch_.after.value_or(now);
    // Asked after the beginning was chosen: who has ended by now did so before, or its end is still
    // to be told.
    if (!watch_.jobs.empty()) {
      const auto jobs = context_.store->GetJobs(store::Scope::All(), watch_.jobs);
      if (!jobs.ok()) return jobs.status();
      for (const v1::Job& job : *jobs) {
        if (!contract::IsTerminal(job.state())) going_on_.insert(job.id());
      }
    }
    // Whoever loses the stream before its first change must know where "now" was.
    result->messages.push_back(Heartbeat());
    began_ = true;
    return absl::OkStatus();
  }

  absl::Status ReadOn(Result* result) {
    const ChangeTail::Read read = context_.changes->ReadAfter(
        position_, kMaxEntriesPerStep, kMaxBytesPerStep,
        [this](const TailEntry& entry) { return jobs_.empty() || jobs_.contains(entry.job); });
    if (read.is_behind) {
      if (absl::Status status = ReadStore(result); !status.ok()) return status;
    } else {
      for (const TailEntry& entry : read.entries) Give(entry, result);
      position_ = read.up_to;
      result->more = read.has_more;
    }
    if (watch_.until_terminal && going_on_.empty() && !result->more) {
      result->final_status = absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void Give(const TailEntry& entry, Result* result) {
    if (entry.has_ended) going_on_.erase(entry.job);
    // The first change of a job may have nothing before it.
    const bool is_all = watch_.filter.kind == contract::Filter::Kind::kAll;
    if (!is_all && !Takes(watch_.filter, entry.change) && !Takes(watch_.filter, entry.before)) {
      return;
    }
    result->messages.push_back(ToBuffer(entry.change));
  }

  absl::Status ReadStore(Result* result) {
    absl::StatusOr<CatchUp::Page> page =
        catch_up_.ReadAfter(position_, /*up_to=*/context_.changes->last());
    if (!page.ok()) return page.status();
    for (const v1::WatchJobsResponse& message : page->messages) {
      result->messages.push_back(ToBuffer(message));
    }
    for (const uint64_t job : page->ended) going_on_.erase(job);
    position_ = page->read_up_to;
    result->more = true;
    return absl::OkStatus();
  }

  grpc::ByteBuffer Heartbeat() const {
    v1::WatchJobsResponse message;
    message.mutable_heartbeat()->set_sequence(position_);
    return ToBuffer(message);
  }

  std::optional<grpc::ByteBuffer> KeepAlive() override {
    if (!began_) return std::nullopt;
    return Heartbeat();
  }

  // Who watches a few jobs is woken by their changes alone, and must not fall behind by others'.
  bool IsDue() override { return began_ && context_.changes->last() > position_; }

  void Unhook() override {
    if (!is_hooked_) return;
    context_.watches->Remove(this, watch_.jobs);
    context_.changes->Leave();
  }

  const Watch watch_;
  const absl::flat_hash_set<uint64_t> jobs_;  // of watch_
  bool is_hooked_ = false;
  // A Step changes these.
  CatchUp catch_up_;
  bool began_ = false;                      // the position is known
  uint64_t position_ = 0;                   // everything up to it was given
  absl::flat_hash_set<uint64_t> going_on_;  // those of jobs_ whose end was not given
};

absl::StatusOr<v1::WatchJobsRequest> Parse(const grpc::ByteBuffer& bytes) {
  v1::WatchJobsRequest request;
  grpc::Slice slice;
  const bool is_good = bytes.DumpToSingleSlice(&slice).ok() &&
                       request.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  if (!is_good) return absl::InternalError("the request cannot be parsed");
  return request;
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* NewWatchStream(const Context& context,
                                                           const grpc::ByteBuffer& bytes) {
  const absl::StatusOr<v1::WatchJobsRequest> request = Parse(bytes);
  absl::StatusOr<Watch> watch =
      request.ok() ? ToWatch(*request, absl::Now()) : absl::StatusOr<Watch>(request.status());
  const absl::Status valid = watch.status();
  auto stream = std::make_shared<WatchStream>(context, watch.ok() ? *std::move(watch) : Watch{});
  WatchStream* reactor = stream.get();
  if (valid.ok()) stream->Hook();
  stream->Begin(valid);
  return reactor;
}

}  // namespace muster::broker
