#include "broker/app/watch_jobs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "broker/app/arguments.h"
#include "broker/app/catch_up.h"
#include "broker/app/project_limits.h"
#include "broker/app/rights.h"
#include "broker/core/cluster_view.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/errors.h"
#include "contract/states.h"

namespace muster::broker {
namespace {

// The most changes that one stream looks through in one step.
constexpr size_t kMaxEntriesPerStep = 512;
// One message, and a step's share of the tail, has at most this many bytes of changes, unless a
// single change is larger; WatchJobsResponse says so.
constexpr size_t kMaxBytesPerMessage = 64 << 10;

struct Watch {
  std::vector<uint64_t> jobs;  // sorted, each once
  contract::Filter filter;
  std::optional<uint64_t> after;  // nothing: from now on
  bool until_terminal = false;
};

absl::StatusOr<Watch> ToWatch(const v1::WatchJobsRequest& request, absl::Time now) {
  if (absl::Status status = CheckIds(request.job_ids()); !status.ok()) return status;
  if (!request.job_ids().empty() && !request.filter().empty()) {
    return contract::BadField("filter", "does not go together with job_ids; give one of them");
  }
  if (request.until_terminal() && request.job_ids().empty()) {
    return contract::BadField("until_terminal", "needs job_ids; a filter has no last job");
  }
  absl::StatusOr<contract::Filter> filter = contract::ParseFilter(request.filter(), now);
  if (!filter.ok()) return filter.status();
  Watch watch;
  watch.jobs.assign(request.job_ids().begin(), request.job_ids().end());
  std::sort(watch.jobs.begin(), watch.jobs.end());
  watch.jobs.erase(std::unique(watch.jobs.begin(), watch.jobs.end()), watch.jobs.end());
  watch.filter = *std::move(filter);
  if (request.has_beginning()) watch.after = 0;
  if (request.has_after()) watch.after = request.after();
  watch.until_terminal = request.until_terminal();
  return watch;
}

ChangeBytes ToBytes(const v1::WatchJobsResponse& message) {
  return std::make_shared<const std::string>(message.SerializeAsString());
}

// True if a filter takes the job of a change.
bool Takes(const contract::Filter& filter, const ChangeBytes& change) {
  v1::WatchJobsResponse message;
  return change != nullptr && message.ParseFromString(*change) && message.changes_size() == 1 &&
         filter.Matches(message.changes(0).job());
}

// Puts changes together into messages, in their order.
class Bundle {
 public:
  explicit Bundle(std::deque<ChangeBytes>* messages) : messages_(messages) {}

  void Add(const ChangeBytes& change) {
    if (size_ + change->size() > kMaxBytesPerMessage) Close();
    size_ += change->size();
    changes_.push_back(change);
  }
  // Ends the message; call it after the last change.
  void Close() {
    if (changes_.empty()) return;
    // A single change is shared by all streams that send it.
    messages_->push_back(changes_.size() == 1 ? changes_.front() : Joined());
    changes_.clear();
    size_ = 0;
  }

 private:
  ChangeBytes Joined() const {
    std::string joined;
    joined.reserve(size_);
    for (const ChangeBytes& change : changes_) joined += *change;
    return std::make_shared<const std::string>(std::move(joined));
  }

  std::deque<ChangeBytes>* const messages_;
  std::vector<ChangeBytes> changes_;
  size_t size_ = 0;
};

class WatchingJobs final : public WatchSource {
 public:
  WatchingJobs(const Services& services, const Principal& principal, store::Scope scope,
               Watch watch)
      : services_(services),
        scope_(std::move(scope)),
        watch_(std::move(watch)),
        filter_(scope_.Narrow(watch_.filter)),
        jobs_(watch_.jobs.begin(), watch_.jobs.end()),
        rights_(services, principal, UseCase::kReadJobs, scope_),
        catch_up_(
            services_.store,
            [engine = services_.engine](const std::string& cluster) {
              return core::KindOf(cluster, *engine->clusters());
            },
            scope_, watch_.jobs, watch_.filter) {}

  void Hook(const std::shared_ptr<Watcher>& stream) override {
    services_.changes->Join();
    services_.watches->Add(stream, watch_.jobs);
    stream_ = stream.get();
  }

  void Unhook() override {
    services_.watches->Remove(stream_, watch_.jobs);
    services_.changes->Leave();
  }

  Pulled Next() override {
    Pulled result;
    absl::Status status = rights_.Check();
    if (status.ok() && !began_) status = Start(&result);
    if (status.ok()) status = ReadOn(&result);
    if (!status.ok()) result.final_status = std::move(status);
    return result;
  }

  std::optional<ChangeBytes> KeepAlive() override {
    if (!began_) return std::nullopt;
    return Heartbeat();
  }

  // A watcher of a few jobs is woken by their changes only, and must not fall behind because of
  // others.
  bool IsDue() const override { return began_ && services_.changes->last() > position_; }

 private:
  absl::Status Start(Pulled* result) {
    const uint64_t now = services_.changes->last();
    position_ = watch_.after.value_or(now);
    // This is asked after the beginning was chosen: a job that has ended by now either did so
    // before the beginning, or its end is still to be sent. The store may be ahead of the tail.
    if (!watch_.jobs.empty()) {
      const auto jobs = services_.store->GetJobs(scope_, watch_.jobs);
      if (!jobs.ok()) return jobs.status();
      for (const v1::Job& job : *jobs) {
        if (!contract::IsTerminal(job.state())) going_on_.insert(job.id());
      }
      // The number is read after the jobs: the ends that they show are not later.
      const auto last = services_.store->LastSequence();
      if (!last.ok()) return last.status();
      ended_by_ = *last;
    }
    // A client that loses the stream before its first change must know where "now" was.
    result->messages.push_back(Heartbeat());
    began_ = true;
    return absl::OkStatus();
  }

  absl::Status ReadOn(Pulled* result) {
    const ChangeTail::Read read = services_.changes->ReadAfter(
        position_, kMaxEntriesPerStep, kMaxBytesPerMessage,
        [this](const TailEntry& entry) { return jobs_.empty() || jobs_.contains(entry.job); });
    if (read.is_behind) {
      const uint64_t up_to = services_.changes->last();
      if (absl::Status status = ReadStore(up_to, result); !status.ok()) return status;
    } else {
      Bundle bundle(&result->messages);
      for (const TailEntry& entry : read.entries) Give(entry, &bundle);
      bundle.Close();
      position_ = read.up_to;
      result->more = read.has_more;
    }
    if (!watch_.until_terminal || !going_on_.empty() || result->more) return absl::OkStatus();
    // Changes of other jobs do not wake this stream, so that it does not wait for the tail.
    if (position_ < ended_by_) return ReadStore(ended_by_, result);
    result->final_status = absl::OkStatus();
    return absl::OkStatus();
  }

  void Give(const TailEntry& entry, Bundle* bundle) {
    if (entry.has_ended) going_on_.erase(entry.job);
    // There may be nothing before the first change of a job.
    const bool is_all = filter_.kind == contract::Filter::Kind::kAll;
    if (!is_all && !Takes(filter_, entry.change) && !Takes(filter_, entry.before)) {
      return;
    }
    bundle->Add(entry.change);
  }

  absl::Status ReadStore(uint64_t up_to, Pulled* result) {
    absl::StatusOr<CatchUp::Page> page = catch_up_.ReadAfter(position_, up_to);
    if (!page.ok()) return page.status();
    Bundle bundle(&result->messages);
    for (v1::JobChange& change : page->changes) {
      v1::WatchJobsResponse message;
      message.add_changes()->Swap(&change);
      bundle.Add(ToBytes(message));
    }
    bundle.Close();
    for (const uint64_t job : page->ended) going_on_.erase(job);
    position_ = page->read_up_to;
    result->more = true;
    return absl::OkStatus();
  }

  ChangeBytes Heartbeat() const {
    v1::WatchJobsResponse message;
    message.mutable_heartbeat()->set_sequence(position_);
    return ToBytes(message);
  }

  const Services services_;
  const store::Scope scope_;
  const Watch watch_;
  const contract::Filter filter_;             // filter of watch_, within the scope
  const absl::flat_hash_set<uint64_t> jobs_;  // jobs of watch_
  const Watcher* stream_ = nullptr;           // used by Unhook only
  // Next changes the members below.
  StreamRights rights_;
  CatchUp catch_up_;
  bool began_ = false;     // the position is known
  uint64_t position_ = 0;  // all changes up to this one were given
  // Holds the jobs of jobs_ that had not ended when the stream began, and whose end was not given
  // yet.
  absl::flat_hash_set<uint64_t> going_on_;
  uint64_t ended_by_ = 0;  // the others of jobs_ ended by this sequence
};

}  // namespace

absl::StatusOr<std::unique_ptr<WatchSource>> WatchJobs(const Principal& principal,
                                                       const Services& services,
                                                       const v1::WatchJobsRequest& request) {
  absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kReadJobs);
  if (!scope.ok()) return scope.status();
  absl::StatusOr<Watch> watch = ToWatch(request, services.now());
  if (!watch.ok()) return watch.status();
  return std::make_unique<WatchingJobs>(services, principal, *std::move(scope), *std::move(watch));
}

}  // namespace muster::broker
