#include "clients/cli/copy_log.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "clients/cli/labelled_lines.h"
#include "clients/cli/text.h"

namespace muster::cli {
namespace {

// Writes one output of the job.
class OutputWriter {
 public:
  // `expected`: where it begins; none: with the first piece.
  OutputWriter(Terminal* terminal, int fd, const LogTarget& target,
               std::optional<uint64_t> expected)
      : terminal_(*terminal),
        fd_(fd),
        is_harmless_(!target.raw &&
                     (fd == 1 ? terminal->out_is_terminal() : terminal->err_is_terminal())),
        is_labelled_(!target.label.empty()),
        lines_(target.label),
        expected_(expected) {}

  void Write(const v1::ReadLogResponse& piece) {
    const std::string& data = piece.data();
    if (expected_ && piece.offset() > *expected_ && !data.empty()) {
      terminal_.Note(fmt::format("{} bytes of the log are not kept", piece.offset() - *expected_));
    }
    expected_ = piece.offset() + data.size();
    PutLines(is_harmless_ ? harmless_.Next(data) : data);
    if (piece.end() == v1::LOG_END_UNSPECIFIED) return;
    if (is_harmless_) PutLines(harmless_.Finish());
    Put(lines_.Finish());
  }

 private:
  void PutLines(std::string_view text) {
    if (is_labelled_) {
      Put(lines_.Next(text));
    } else {
      Put(text);
    }
  }
  void Put(std::string_view text) {
    if (text.empty()) return;
    fd_ == 1 ? terminal_.Out(text) : terminal_.Err(text);
  }

  Terminal& terminal_;
  const int fd_;
  const bool is_harmless_;
  const bool is_labelled_;
  HarmlessStream harmless_;
  LabelledLines lines_;
  std::optional<uint64_t> expected_;
};

// Writes a rank's log.
class LogWriter {
 public:
  LogWriter(Terminal* terminal, const v1::ReadLogRequest& request, const LogTarget& target) {
    for (const v1::LogStream stream : {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR}) {
      const bool is_alone = request.stream() != v1::LOG_STREAM_UNSPECIFIED;
      if (is_alone && stream != request.stream()) continue;
      const bool is_other = stream == v1::LOG_STREAM_STDERR && !is_alone && !target.is_merged;
      std::optional<uint64_t> begin = request.tail_lines() > 0 ? std::nullopt : std::optional(0);
      for (const v1::LogPosition& position : request.positions()) {
        if (position.stream() == stream) begin = position.offset();
      }
      outputs_.try_emplace(stream, terminal, is_other ? 2 : 1, target, begin);
    }
  }

  void Write(const v1::ReadLogResponse& piece) {
    const auto output = outputs_.find(piece.stream());
    if (output != outputs_.end()) output->second.Write(piece);
  }

 private:
  std::map<v1::LogStream, OutputWriter> outputs_;
};

void WriteObjects(Terminal& terminal, uint32_t rank, const v1::ReadLogResponse& piece,
                  LogObjects* objects) {
  terminal.Out(objects->Next(rank, piece.stream(), piece.offset(), piece.data()));
  if (piece.end() != v1::LOG_END_UNSPECIFIED) {
    terminal.Out(objects->End(rank, piece.stream(), piece.end()));
  }
}

using Ends = std::map<v1::LogStream, v1::LogEnd>;

void NoteEnd(Terminal& terminal, const v1::ReadLogRequest& request, std::string_view output,
             v1::LogEnd end) {
  const std::string log =
      fmt::format("the log of job {} ({}rank {})", request.job_id(), output, request.rank());
  switch (end) {
    case v1::LOG_END_TRUNCATED:
      return terminal.Note(log +
                           " ends here: it has more bytes than the broker keeps for a job; "
                           "the rest is on the cluster only");
    case v1::LOG_END_INCOMPLETE:
      // The error is told also with -q: the bytes that were written are not the log.
      return terminal.Err(fmt::format(
          "muster: {} is not complete: the run has ended, and its cluster has not delivered the "
          "rest\n",
          log));
    case v1::LOG_END_EXPIRED:
      return terminal.Note(log + " was removed when its time was over");
    default:
      return;
  }
}

// Says what holds for both outputs once.
void NoteEnds(Terminal& terminal, const v1::ReadLogRequest& request, const Ends& ends) {
  if (ends.size() == 2 && ends.begin()->second == ends.rbegin()->second) {
    return NoteEnd(terminal, request, "", ends.begin()->second);
  }
  for (const auto& [stream, end] : ends) {
    const bool is_error = stream == v1::LOG_STREAM_STDERR;
    NoteEnd(terminal, request, is_error ? "standard error, " : "standard output, ", end);
  }
}

}  // namespace

absl::StatusOr<CopiedLog> CopyLog(client::Client& client, Terminal& terminal,
                                  const v1::ReadLogRequest& request, const LogTarget& target,
                                  std::atomic<uint64_t>* pieces) {
  LogWriter writer(&terminal, request, target);
  Ends ends;
  const auto reader = client.ReadLog(request, absl::InfiniteFuture());
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) {
      if (target.objects != nullptr) terminal.Out(target.objects->Flush());
      return piece.status();
    }
    if (!piece->has_value()) break;
    if (target.objects != nullptr) {
      WriteObjects(terminal, request.rank(), **piece, target.objects);
    } else {
      writer.Write(**piece);
    }
    if (pieces != nullptr && !(*piece)->data().empty()) pieces->fetch_add(1);
    if ((*piece)->end() != v1::LOG_END_UNSPECIFIED) ends[(*piece)->stream()] = (*piece)->end();
  }
  NoteEnds(terminal, request, ends);
  CopiedLog copied;
  for (const auto& [_, end] : ends) {
    copied.is_incomplete = copied.is_incomplete || end == v1::LOG_END_INCOMPLETE;
    copied.is_expired = copied.is_expired || end == v1::LOG_END_EXPIRED;
  }
  return copied;
}

}  // namespace muster::cli
