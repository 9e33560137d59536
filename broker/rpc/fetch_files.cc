// Only one piece is on its way at a time: the agent's stream is read on when the client has taken
// the last piece, so that gRPC's flow control holds the agent back, and memory use stays flat.
#include "broker/rpc/fetch_files.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "broker/engine/engine.h"
#include "broker/rpc/ask_agent.h"
#include "broker/rpc/fetches.h"
#include "broker/rpc/stream_registry.h"
#include "broker/rpc/worker_pool.h"
#include "broker/store/store.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/roles.h"
#include "rpc/status.h"

namespace muster::broker {
namespace {

absl::Status ValidateFetch(const v1::FetchFilesRequest& request) {
  if (request.job_id() == 0) return contract::BadField("job_id", "is missing; give a job's number");
  const std::string_view wrong =
      request.path().empty() ? "" : contract::WhatIsWrongWithTreePath(request.path());
  if (wrong.empty()) return absl::OkStatus();
  return contract::BadField("path",
                            fmt::format("{} {}; use a path relative to the run's working directory",
                                        contract::Quoted(request.path()), wrong));
}

absl::Status NotFound(std::string_view reason, std::string_view message) {
  return contract::Error(absl::StatusCode::kNotFound, reason, message);
}

absl::Status SendsNone(const v1::Cluster& cluster) {
  const std::string_view why =
      cluster.kind() == v1::CLUSTER_KIND_KUBERNETES
          ? "a pod's files go with the pod. Let the command write what is to stay to a volume "
            "(kubernetes: {volumes: [...]}) or below results_directory, and read it there"
          : "its agent sends no files; install the broker's version of it";
  return contract::Error(absl::StatusCode::kFailedPrecondition, "CLUSTER_SENDS_NO_FILES",
                         fmt::format("cluster \"{}\": {}", cluster.name(), why),
                         {{"cluster", cluster.name()}});
}

class FetchStream final : public grpc::ServerWriteReactor<v1::FetchFilesResponse>,
                          public OpenStream,
                          public FileTaker,
                          public std::enable_shared_from_this<FetchStream> {
 public:
  FetchStream(const Context& context, v1::FetchFilesRequest request)
      : context_(context), request_(std::move(request)) {}

  void Begin() {
    self_ = shared_from_this();
    absl::Status status = ValidateFetch(request_);
    if (status.ok()) status = context_.streams->Add(self_);
    if (status.ok()) status = context_.fetches->Add(self_, &ticket_);
    if (!status.ok()) return EndWith(status);
    if (!context_.readers->PostCall([self = shared_from_this()] { self->Find(); }))
      EndWith(
          absl::UnavailableError("the broker is shutting down or has too much to read; try again"));
  }

  // ---- FileTaker

  bool Attach(std::shared_ptr<FileFeed> feed) override {
    const std::lock_guard lock(mutex_);
    if (ended_ || feed_ != nullptr) return false;
    feed_ = std::move(feed);
    since_ = SteadyClock::now();
    return true;
  }

  void Take(v1::FetchFilesResponse piece) override {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    piece_ = std::move(piece);
    since_ = SteadyClock::now();
    StartWrite(&piece_);
  }

  void EndWith(const absl::Status& status) override {
    std::shared_ptr<FileFeed> feed;
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return;
      feed = std::move(feed_);
      Finish(rpc::ToGrpc(status));
    }
    if (feed != nullptr) feed->Close(absl::CancelledError("the client wants no more of it"));
  }

  // ---- OpenStream

  void Tick(SteadyClock::time_point now) override {
    bool has_begun = false;
    {
      const std::lock_guard lock(mutex_);
      has_begun = feed_ != nullptr;
      const absl::Duration most =
          has_begun ? context_.fetch_max_silence : context_.fetch_begin_patience;
      if (ended_ || absl::FromChrono(now - since_) < most) return;
    }
    EndWith(contract::Error(
        absl::StatusCode::kDeadlineExceeded, "FETCH_SILENT",
        has_begun ? fmt::format("nothing more went for {} s, because nobody took it or because the "
                                "cluster's file system hangs; try again",
                                absl::ToInt64Seconds(context_.fetch_max_silence))
                  : std::string("the agent has not begun to send; try again")));
  }

  void End(const absl::Status& status) override { EndWith(status); }

  // ---- reactions

  void OnWriteDone(bool ok) override {
    if (!ok) return EndWith(absl::CancelledError("the client went away"));
    std::shared_ptr<FileFeed> feed;
    {
      const std::lock_guard lock(mutex_);
      since_ = SteadyClock::now();
      feed = feed_;
    }
    if (feed != nullptr) feed->ReadOn();
  }

  void OnCancel() override { EndWith(absl::CancelledError("the call was canceled")); }

  void OnDone() override {
    context_.streams->Remove(this);
    if (!ticket_.empty()) context_.fetches->Remove(ticket_);
    const auto self = std::move(self_);
  }

 private:
  // Runs on the readers: finds which run it is, and on which cluster.
  void Find() {
    absl::Status status = FindRun();
    if (!status.ok()) return EndWith(status);
    const std::optional<v1::Cluster> cluster = core::Find(cluster_, *context_.engine->clusters());
    if (!cluster) return EndWith(NoSuchCluster(cluster_));
    if (!cluster->inventory().sends_files()) return EndWith(SendsNone(*cluster));
    Ask();
  }

  absl::Status FindRun() {
    const absl::StatusOr<v1::Job> job =
        context_.store->GetJob(store::Scope::All(), request_.job_id());
    if (!job.ok()) return job.status();
    const auto runs = static_cast<uint32_t>(job->runs_size());
    if (runs == 0 || request_.run() > runs) {
      return NotFound("NO_SUCH_RUN", request_.run() == 0
                                         ? fmt::format("job {} has had no run yet", job->id())
                                         : fmt::format("job {} has had {} runs; there is no run {}",
                                                       job->id(), runs, request_.run()));
    }
    if (const uint32_t ranks = contract::RankCount(job->spec()); request_.rank() >= ranks) {
      return NotFound("NO_SUCH_RANK", fmt::format("job {} has {} ranks, beginning at 0; there is "
                                                  "no rank {}",
                                                  job->id(), ranks, request_.rank()));
    }
    if (const std::string& directory = job->spec().working_directory(); !directory.empty()) {
      return contract::Error(
          absl::StatusCode::kFailedPrecondition, "RUN_HAS_NO_FILES",
          fmt::format("job {} works in {}, a directory of the cluster, and has none of its own; "
                      "copy from there",
                      job->id(), contract::Quoted(directory)));
    }
    const v1::Run& run =
        job->runs(static_cast<int>(request_.run() == 0 ? runs : request_.run()) - 1);
    run_key_ = run.run_key();
    cluster_ = run.cluster();
    if (const auto rank = static_cast<int>(request_.rank()); rank < run.nodes_size()) {
      node_ = run.nodes(rank);
    }
    return absl::OkStatus();
  }

  void Ask() {
    agent::v1::AgentQuestion question;
    agent::v1::SendFilesQuestion& send = *question.mutable_send_files();
    send.set_ticket(ticket_);
    send.set_run_key(run_key_);
    send.set_rank(request_.rank());
    send.set_path(request_.path());
    send.set_node(node_);
    AskCluster(context_, cluster_, std::move(question), context_.fetch_begin_patience,
               absl::InfiniteFuture(),
               [self = shared_from_this()](const absl::StatusOr<ClusterAnswer>& answer) {
                 if (!answer.ok()) self->EndWith(AgentFailed(answer.status()));
               });
  }

  const Context context_;
  const v1::FetchFilesRequest request_;
  std::shared_ptr<FetchStream> self_;
  std::string ticket_;  // set before any other thread knows of the stream

  // These members belong to one step after the other.
  std::string run_key_;
  std::string cluster_;
  std::string node_;  // empty: not known

  std::mutex mutex_;
  std::shared_ptr<FileFeed> feed_;
  v1::FetchFilesResponse piece_;  // being written
  SteadyClock::time_point since_ = SteadyClock::now();
  bool ended_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::FetchFilesResponse>* NewFetchStream(
    const Context& context, const v1::FetchFilesRequest& request) {
  auto stream = std::make_shared<FetchStream>(context, request);
  FetchStream* reactor = stream.get();
  stream->Begin();
  return reactor;
}

}  // namespace muster::broker
