#include "agents/core/file_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "agents/core/broker_session.h"
#include "agents/core/clean_text.h"
#include "contract/errors.h"
#include "contract/file_tree.h"
#include "contract/link_fault.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "rpc/status_message.h"
#include "sync/mutex.h"

namespace muster::agents {
namespace {

// The limit of FileLeftOut.why.
constexpr size_t kMaxWhyBytes = 256;

std::string Join(const std::string& above, const std::string& below) {
  if (above.empty() || below.empty()) return above + below;
  return above + "/" + below;
}

// A piece that another broker has sent, as this one takes it.
agent::v1::SendFilesRequest MessageOf(v1::FetchFilesResponse piece) {
  agent::v1::SendFilesRequest message;
  if (piece.has_entry()) *message.mutable_entry() = std::move(*piece.mutable_entry());
  if (piece.has_chunk()) message.set_chunk(std::move(*piece.mutable_chunk()));
  if (piece.has_left_out()) *message.mutable_left_out() = std::move(*piece.mutable_left_out());
  return message;
}

// Serves one request by a walk through the tree, directories before what is in them.
class Walk {
 public:
  Walk(RunFiles* files, std::string base, FilesLink* link)
      : files_(*files), base_(std::move(base)), link_(*link) {}

  absl::StatusOr<bool> Go() {
    auto entry = files_.LookAt(base_, /*follow=*/true);
    if (!entry.ok()) return entry.status();
    if (entry->kind() != v1::FILE_KIND_FILE && entry->kind() != v1::FILE_KIND_DIRECTORY) {
      return absl::InvalidArgumentError(
          "is no file or directory, but a device, a pipe or a socket, which cannot be sent");
    }
    absl::Status status = SendEntry("", *std::move(entry));
    while (status.ok() && is_wanted_ && !pending_.empty()) {
      const std::string path = std::move(pending_.back());
      pending_.pop_back();
      status = Visit(path);
    }
    if (!status.ok()) return status;
    return is_wanted_;
  }

 private:
  void Send(const agent::v1::SendFilesRequest& message) {
    if (is_wanted_) is_wanted_ = link_.Send(message);
  }

  // OK: the walk goes on.
  absl::Status LeaveOut(const std::string& path, v1::FileLeftOutCode code, std::string_view why) {
    agent::v1::SendFilesRequest message;
    message.mutable_left_out()->set_path(path);
    message.mutable_left_out()->set_code(code);
    message.mutable_left_out()->set_why(CleanText(std::string(why), kMaxWhyBytes));
    Send(message);
    return absl::OkStatus();
  }

  // A file that cannot be read keeps none of the others from being sent; a host that is away does.
  absl::Status LeaveOut(const std::string& path, const absl::Status& error) {
    if (absl::IsUnavailable(error)) return error;
    return LeaveOut(path, v1::FILE_LEFT_OUT_CODE_UNREADABLE, ToStd(error.message()));
  }

  // Visits the entries below the directory that was asked for.
  absl::Status Visit(const std::string& path) {
    if (const std::string_view wrong = contract::WhatIsWrongWithTreePath(path); !wrong.empty())
      return LeaveOut(path, v1::FILE_LEFT_OUT_CODE_PATH_INVALID, wrong);
    auto entry = files_.LookAt(Join(base_, path), /*follow=*/false);
    if (absl::IsNotFound(entry.status())) return absl::OkStatus();  // it went meanwhile
    if (!entry.ok()) return LeaveOut(path, entry.status());
    if (entry->kind() == v1::FILE_KIND_UNSPECIFIED) {
      return LeaveOut(path, v1::FILE_LEFT_OUT_CODE_SPECIAL_FILE, "is a device, a pipe or a socket");
    }
    if (entry->kind() == v1::FILE_KIND_SYMLINK) {
      const contract::LinkFault fault = contract::FaultOfLink(path, entry->link_target());
      if (!fault.what.empty())
        return LeaveOut(path, v1::FILE_LEFT_OUT_CODE_LINK_INVALID, fault.Text());
    }
    return SendEntry(path, *std::move(entry));
  }

  absl::Status SendEntry(const std::string& path, v1::FileTreeEntry entry) {
    if (++entries_ > kMaxSentEntries) {
      return absl::ResourceExhaustedError(ToAbsl(fmt::format(
          "there are more than {} files; pack them in the job, with tar", kMaxSentEntries)));
    }
    const v1::FileKind kind = entry.kind();
    const uint64_t size_bytes = entry.size_bytes();
    std::vector<std::string> names;
    std::string first;
    // The entry is read before it is announced, so that one that cannot be read is left out.
    absl::Status status;
    if (kind == v1::FILE_KIND_DIRECTORY) {
      auto listed = files_.List(Join(base_, path));
      status = listed.status();
      if (listed.ok()) names = *std::move(listed);
    } else if (kind == v1::FILE_KIND_FILE) {
      auto read = files_.Read(Join(base_, path), 0, PieceOf(size_bytes));
      status = read.status();
      if (read.ok()) first = *std::move(read);
    }
    if (!status.ok() && path.empty()) return status;
    if (!status.ok()) return LeaveOut(path, status);
    agent::v1::SendFilesRequest message;
    *message.mutable_entry() = std::move(entry);
    message.mutable_entry()->set_path(path);
    Send(message);
    // The last is visited first.
    for (auto name = names.rbegin(); name != names.rend(); ++name)
      pending_.push_back(Join(path, *name));
    if (kind == v1::FILE_KIND_FILE) return SendContent(path, size_bytes, std::move(first));
    return absl::OkStatus();
  }

  static size_t PieceOf(uint64_t left) {
    return static_cast<size_t>(std::min<uint64_t>(left, contract::kMaxFileChunkBytes));
  }

  absl::Status SendContent(const std::string& path, uint64_t size_bytes, std::string piece) {
    uint64_t sent = 0;
    while (!piece.empty() && is_wanted_) {
      sent += piece.size();
      agent::v1::SendFilesRequest message;
      message.set_chunk(std::move(piece));
      Send(message);
      if (sent >= size_bytes) break;
      auto next = files_.Read(Join(base_, path), sent, PieceOf(size_bytes - sent));
      if (!next.ok()) return next.status();
      piece = *std::move(next);
    }
    return absl::OkStatus();
  }

  RunFiles& files_;
  const std::string base_;
  FilesLink& link_;
  // Paths below the base that are still to be visited: those of each directory on the way.
  std::vector<std::string> pending_;
  uint64_t entries_ = 0;
  bool is_wanted_ = true;
};

}  // namespace

absl::StatusOr<bool> SendFiles(RunFiles* files, const std::string& path, FilesLink* link) {
  return Walk(files, path, link).Go();
}

absl::StatusOr<FilesAt> FindFiles(const OpenRunFiles& open, const OpenRunFiles& open_results,
                                  const RankOfRun& of, const std::string& path) {
  absl::StatusOr<std::unique_ptr<RunFiles>> work = contract::Error(
      absl::StatusCode::kFailedPrecondition, "RUN_HAS_NO_FILES",
      fmt::format("a pod's files go with the pod; of a run only its {} can be copied from here",
                  contract::kResultsName));
  if (open != nullptr) work = open(of);
  const bool names_results = path.substr(0, path.find('/')) == contract::kResultsName;
  if (!names_results || of.results_directory.empty() || open_results == nullptr) {
    if (!work.ok()) return work.status();
    return FilesAt{*std::move(work), path};
  }
  const absl::Status there =
      work.ok() ? (*work)->LookAt(std::string(contract::kResultsName), /*follow=*/true).status()
                : work.status();
  if (there.ok()) return FilesAt{*std::move(work), path};
  if (absl::IsUnavailable(there)) return there;
  absl::StatusOr<std::unique_ptr<RunFiles>> results = open_results(of);
  if (!results.ok()) return results.status();
  return FilesAt{*std::move(results),
                 path.substr(std::min(path.size(), contract::kResultsName.size() + 1))};
}

FileSender::FileSender(Ways ways, std::string cluster, std::string journal_id)
    : ways_(std::move(ways)),
      cluster_(std::move(cluster)),
      journal_id_(std::move(journal_id)),
      lane_(std::make_unique<WorkerLane>(kMaxSends)) {}

FileSender::~FileSender() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (FilesLink* link : links_) link->Cancel();
  }
  lane_.reset();
}

absl::Status FileSender::Send(const agent::v1::SendFilesQuestion& question) {
  if (!can_send()) return absl::UnimplementedError("this agent sends no files of runs");
  {
    const MutexLock lock(mutex_);
    if (under_way_ >= kMaxSends) {
      return contract::RetryableError(
          absl::StatusCode::kResourceExhausted, "TOO_MANY_FETCHES",
          fmt::format("the agent sends {} files or directories already; try again", kMaxSends),
          absl::Seconds(1));
    }
    ++under_way_;
  }
  lane_->Post([this, question] {
    Serve(question);
    const MutexLock lock(mutex_);
    --under_way_;
  });
  return absl::OkStatus();
}

void FileSender::Serve(const agent::v1::SendFilesQuestion& question) {
  const std::unique_ptr<FilesLink> link = ways_.dial();
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    links_.insert(link.get());
  }
  bool is_wanted = true;
  const absl::Status sent = SendTo(link.get(), question, &is_wanted);
  if (is_wanted) {
    agent::v1::SendFilesRequest end;
    *end.mutable_end() = rpc::ToMessage(sent);
    end.mutable_end()->set_message(CleanText(end.end().message(), kMaxDetailBytes));
    link->Send(end);
  }
  const absl::Status status = link->Finish();
  {
    const MutexLock lock(mutex_);
    links_.erase(link.get());
  }
  LogEvent(sent.ok() && status.ok() ? spdlog::level::info : spdlog::level::warn, "files_sent",
           {{"run", question.run_key()},
            {"path", CleanText(question.path(), kMaxDetailBytes)},
            {"error", std::string(ToStd((sent.ok() ? status : sent).message()))}});
}

absl::Status FileSender::SendTo(FilesLink* link, const agent::v1::SendFilesQuestion& question,
                                bool* is_wanted) {
  agent::v1::SendFilesRequest hello;
  hello.mutable_hello()->set_protocol_version(kProtocolVersion);
  hello.mutable_hello()->set_cluster(cluster_);
  hello.mutable_hello()->set_journal_id(journal_id_);
  hello.mutable_hello()->set_ticket(question.ticket());
  if (!link->Send(hello)) {
    *is_wanted = false;
    return absl::OkStatus();
  }
  // Each receiver checks the path itself, although the broker has checked it, too.
  if (const std::string& path = question.path();
      !path.empty() && !contract::WhatIsWrongWithTreePath(path).empty())
    return contract::BadField("path", "is no path relative to the run's working directory");
  const RankOfRun of = {.run_key = question.run_key(),
                        .rank = question.rank(),
                        .node = question.node(),
                        .results_directory = question.results_directory()};
  if (ways_.relay != nullptr) {
    return ways_.relay(of, question.path(), [&](v1::FetchFilesResponse piece) {
      *is_wanted = link->Send(MessageOf(std::move(piece)));
      return *is_wanted;
    });
  }
  const auto found = FindFiles(ways_.open, ways_.open_results, of, question.path());
  if (!found.ok()) return found.status();
  const auto sent = SendFiles(found->files.get(), found->path, link);
  if (!sent.ok()) return sent.status();
  *is_wanted = *sent;
  return absl::OkStatus();
}

}  // namespace muster::agents
