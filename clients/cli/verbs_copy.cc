// The verb cp: files of a run to this machine.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "clients/cli/exit_code.h"
#include "clients/cli/progress_line.h"
#include "clients/cli/text.h"
#include "clients/cli/tree_writer.h"
#include "clients/cli/verbs.h"
#include "contract/counted.h"
#include "contract/errors.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// Left-out files that are told one by one; the others are counted.
constexpr uint64_t kMaxToldLeftOut = 20;

// Takes the pieces one after the other.
class Copy {
 public:
  explicit Copy(Session* session)
      : session_(*session),
        is_to_stdout_(session->call.target == "-"),
        writer_(session->call.target, NameOf(session->call)),
        progress_(&session->terminal, "copying") {}

  absl::Status Take(const v1::FetchFilesResponse& piece) {
    switch (piece.piece_case()) {
      case v1::FetchFilesResponse::kEntry:
        EndFile();
        file_ = piece.entry();
        return TakeEntry(piece.entry());
      case v1::FetchFilesResponse::kChunk:
        got_bytes_ += piece.chunk().size();
        all_bytes_ += piece.chunk().size();
        ShowProgress();
        if (!is_to_stdout_) return writer_.Append(piece.chunk());
        session_.terminal.Out(piece.chunk());
        return absl::OkStatus();
      case v1::FetchFilesResponse::kLeftOut:
        LeaveOut(piece.left_out().path(), piece.left_out().why());
        return absl::OkStatus();
      case v1::FetchFilesResponse::PIECE_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError(
        "the broker sends what this program does not know; update it");
  }

  void ClearProgress() { progress_.Clear(); }

  int Finish() {
    progress_.Clear();
    EndFile();
    if (!is_to_stdout_) {
      if (absl::Status status = writer_.Finish(); !status.ok()) return Fail(session_, status);
      if (session_.terminal.err_is_terminal()) {
        session_.terminal.Note(
            fmt::format("copied {} of {}B to {}", contract::Counted(writer_.files(), "file"),
                        contract::FormatBytes(writer_.bytes()), Harmless(writer_.path())));
      }
    }
    if (left_out_ > kMaxToldLeftOut)
      session_.terminal.Note(fmt::format("left out in all: {}", left_out_));
    return left_out_ > 0 ? kError : kOk;
  }

 private:
  // Returns the name of the copy here, if the target is a directory.
  static std::string NameOf(const Invocation& call) {
    if (call.path.empty()) return fmt::format("{}", call.jobs[0].job);
    return call.path.substr(call.path.rfind('/') + 1);
  }

  // The size of one file is known, that of a directory is not.
  void ShowProgress() {
    if (is_to_stdout_ && session_.terminal.out_is_terminal()) return;
    const bool is_one_file = file_.kind() == v1::FILE_KIND_FILE && file_.path().empty();
    progress_.Show(all_bytes_, is_one_file ? file_.size_bytes() : 0);
  }

  void LeaveOut(std::string_view path, std::string_view why) {
    progress_.Clear();
    if (++left_out_ <= kMaxToldLeftOut)
      session_.terminal.Note(fmt::format("left out: {} {}", Harmless(path), OneLine(why)));
  }

  // The bytes of a file that its run has shortened meanwhile are kept, and said not to be all.
  void EndFile() {
    if (got_bytes_ < file_.size_bytes()) {
      LeaveOut(file_.path().empty() ? session_.call.path : file_.path(),
               fmt::format("became shorter while it was read: {} of {} bytes are here", got_bytes_,
                           file_.size_bytes()));
    }
    got_bytes_ = 0;
  }

  absl::Status TakeEntry(const v1::FileTreeEntry& entry) {
    if (!is_to_stdout_) return writer_.Begin(entry);
    if (entry.kind() == v1::FILE_KIND_FILE && entry.path().empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "it is a directory, and only a file can go to standard output; name a directory to copy it "
        "to");
  }

  Session& session_;
  const bool is_to_stdout_;
  TreeWriter writer_;
  ProgressLine progress_;
  v1::FileTreeEntry file_;  // the last entry
  uint64_t got_bytes_ = 0;  // of it
  uint64_t all_bytes_ = 0;  // of all files
  uint64_t left_out_ = 0;
};

}  // namespace

int CopyFiles(Session& session) {
  v1::FetchFilesRequest request;
  request.set_job_id(session.call.jobs[0].job);
  request.set_run(session.call.jobs[0].run);
  request.set_rank(session.call.rank);
  request.set_path(session.call.path);
  const auto reader = session.client.FetchFiles(request);
  Copy copy(&session);
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) {
      copy.ClearProgress();
      const int code = Fail(session, piece.status());
      // A file's name may have these signs, so that only a miss shows that a pattern was meant.
      const bool has_signs = request.path().find_first_of("*?[") != std::string::npos;
      const auto info = contract::GetErrorInfo(piece.status());
      if (has_signs && info.has_value() && info->reason() == "PATH_NOT_FOUND")
        session.terminal.Note("cp takes no patterns; name one file, or a directory for all in it");
      return code;
    }
    if (!piece->has_value()) return copy.Finish();
    if (absl::Status status = copy.Take(**piece); !status.ok()) {
      copy.ClearProgress();
      return Fail(session, status);
    }
  }
}

}  // namespace muster::cli
