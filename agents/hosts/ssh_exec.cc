#include "agents/hosts/ssh_exec.h"

#include <libssh2.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "absl/strings/cord.h"
#include "fmt/format.h"

namespace muster::hosts {
namespace {

// Bytes that libssh2 sends at once.
constexpr size_t kWriteBytes = 32 << 10;
constexpr size_t kReadBytes = 64 << 10;
// One command must not keep the others waiting.
constexpr int kMaxReadsInTurn = 16;
// sshd looks at a command's outputs each time that it looks at its connection. So when it has
// answered twice without a byte of the command's, all that the command wrote has come.
constexpr int kQuietRoundTrips = 2;
// Output that a left-behind process goes on writing is not waited for: sockets hold less than so
// many of sshd's reads.
constexpr int kMaxRoundTrips = 64;

// This payload of a status names the output that was too long.
constexpr char kTooLongOutput[] = "muster.dev/too-long-output";
constexpr char kStdout[] = "stdout";

}  // namespace

absl::Status TooLongError(bool is_stdout) {
  const char* const name = is_stdout ? kStdout : "stderr";
  absl::Status error = absl::ResourceExhaustedError(fmt::format("wrote too much to its {}", name));
  error.SetPayload(kTooLongOutput, absl::Cord(name));
  return error;
}

bool IsStdoutTooLong(const absl::Status& status) {
  const auto output = status.GetPayload(kTooLongOutput);
  return output.has_value() && *output == kStdout;
}

SshExec::SshExec(SshSession* session, const ExecRequest* request)
    : session_(session),
      request_(request),
      stdout_(request == nullptr ? "" : request->script.nonce,
              request == nullptr ? 0 : request->max_stdout_bytes),
      stderr_(request == nullptr ? "" : request->script.nonce,
              request == nullptr ? 0 : request->max_stderr_bytes) {}

int SshExec::pid() const { return std::atoi(stdout_.greeting().c_str()); }

bool SshExec::IsWaiting(long rc) const { return rc == LIBSSH2_ERROR_EAGAIN; }

absl::Status SshExec::Step() {
  if (is_closed_) return absl::OkStatus();
  if (channel_ == nullptr || !is_started_) {
    if (absl::Status status = StepOpening(); !status.ok() || !is_started_) return status;
  }
  if (state_ == State::kRunning && !wants_close_) {
    if (absl::Status status = StepRunning(); !status.ok()) return status;
  }
  return wants_close_ ? StepClosing() : absl::OkStatus();
}

absl::Status SshExec::StepOpening() {
  LIBSSH2_SESSION* const raw = session_->raw();
  if (state_ == State::kRefused) {
    is_closed_ = wants_close_;
    return absl::OkStatus();
  }
  if (channel_ == nullptr) {
    channel_ = libssh2_channel_open_session(raw);
    if (channel_ == nullptr) {
      const int error = libssh2_session_last_errno(raw);
      if (IsWaiting(error)) return absl::OkStatus();
      if (error != LIBSSH2_ERROR_CHANNEL_FAILURE) return session_->Fault("opening a channel");
      state_ = State::kRefused;
      is_closed_ = wants_close_;
      return absl::OkStatus();
    }
  }
  if (request_ == nullptr) {
    is_started_ = true;
    state_ = State::kEnded;
    return absl::OkStatus();
  }
  const std::string_view command = request_->script.shell_command;
  const int rc = libssh2_channel_process_startup(channel_, "exec", 4, command.data(),
                                                 static_cast<unsigned>(command.size()));
  if (IsWaiting(rc)) return absl::OkStatus();
  if (rc == LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED) {
    is_started_ = true;
    state_ = State::kEnded;
    result_.noise = "the host refuses to execute commands";
    return absl::OkStatus();
  }
  if (rc != 0) return session_->Fault("starting a command");
  is_started_ = true;
  state_ = State::kRunning;
  return absl::OkStatus();
}

absl::Status SshExec::StepRunning() {
  // A call that has sent a part of its packet comes back first; until then nothing else may send.
  bool must_stop = false;
  absl::Status status;
  for (int i = static_cast<int>(turn_); i <= static_cast<int>(Turn::kEnd); ++i) {
    turn_ = static_cast<Turn>(i);
    switch (turn_) {
      case Turn::kWrite:
        status = Write(&must_stop);
        break;
      case Turn::kEof:
        status = SendEof(&must_stop);
        break;
      case Turn::kStdout:
        status = Read(0, &stdout_, &must_stop);
        break;
      case Turn::kStderr:
        status = Read(SSH_EXTENDED_DATA_STDERR, &stderr_, &must_stop);
        break;
      case Turn::kDrain:
        status = RoundTrip(&must_stop);
        break;
      case Turn::kEnd:
        status = CheckEnd();
        break;
    }
    if (!status.ok() || must_stop || state_ != State::kRunning) return status;
  }
  turn_ = Turn::kWrite;
  return absl::OkStatus();
}

std::string_view SshExec::Unwritten() {
  const std::string_view header = request_->script.header;
  if (written_ < header.size()) return header.substr(written_);
  if (request_->talk == nullptr) return request_->input.substr(written_ - header.size());
  if (written_ == header.size() + said_.size()) {
    said_ = request_->talk->TakeSaid();
    written_ = header.size();
  }
  return std::string_view(said_).substr(written_ - header.size());
}

absl::Status SshExec::Write(bool* must_stop) {
  for (std::string_view rest = Unwritten(); !is_input_done_ && !rest.empty(); rest = Unwritten()) {
    const size_t bytes = std::min(kWriteBytes, rest.size());
    const ssize_t rc = libssh2_channel_write(channel_, rest.data(), bytes);
    if (IsWaiting(rc)) {
      *must_stop = session_->is_sending();
      return absl::OkStatus();
    }
    if (rc == 0) return absl::OkStatus();  // the host has no room for more now
    if (rc == LIBSSH2_ERROR_CHANNEL_CLOSED || rc == LIBSSH2_ERROR_CHANNEL_EOF_SENT) {
      is_input_done_ = true;  // the program ended without reading it all
      return absl::OkStatus();
    }
    if (rc < 0) return session_->Fault("writing a command's input");
    written_ += static_cast<size_t>(rc);
  }
  return absl::OkStatus();
}

absl::Status SshExec::SendEof(bool* must_stop) {
  if (request_->talk != nullptr && !request_->talk->is_closed()) return absl::OkStatus();
  if (is_input_done_ || !Unwritten().empty()) return absl::OkStatus();
  const int rc = libssh2_channel_send_eof(channel_);
  if (IsWaiting(rc)) {
    *must_stop = session_->is_sending();
    return absl::OkStatus();
  }
  if (rc != 0 && session_->is_broken()) return session_->Fault("ending a command's input");
  is_input_done_ = true;
  return absl::OkStatus();
}

absl::Status SshExec::Read(int stream, FramedOutput* output, bool* must_stop) {
  std::array<char, kReadBytes> buffer;
  for (int i = 0; i < kMaxReadsInTurn; ++i) {
    const ssize_t rc = libssh2_channel_read_ex(channel_, stream, buffer.data(), buffer.size());
    if (IsWaiting(rc)) {
      *must_stop = session_->is_sending();
      return absl::OkStatus();
    }
    if (rc == 0 || rc == LIBSSH2_ERROR_CHANNEL_CLOSED) return absl::OkStatus();
    if (rc < 0) return session_->Fault("reading a command's output");
    has_read_ = true;
    if (!output->Add({buffer.data(), static_cast<size_t>(rc)})) {
      is_stdout_too_long_ = stream == 0;
      state_ = State::kTooLong;
      return absl::OkStatus();
    }
    if (stream == 0 && request_->talk != nullptr && !output->data().empty())
      request_->talk->Hear(std::exchange(output->data(), {}));
  }
  return absl::OkStatus();
}

void SshExec::Drain() {
  is_draining_ = true;
  has_read_ = false;
}

absl::Status SshExec::RoundTrip(bool* must_stop) {
  const bool has_ended = libssh2_channel_eof(channel_) == 1 && !session_->is_sending();
  if (!is_draining_ || has_ended) return absl::OkStatus();
  // A request that sshd refuses once a command runs, but answers.
  constexpr std::string_view kName = "MUSTER_ROUND_TRIP";
  const int rc =
      libssh2_channel_setenv_ex(channel_, kName.data(), static_cast<unsigned>(kName.size()), "", 0);
  if (IsWaiting(rc)) {
    *must_stop = session_->is_sending();
    return absl::OkStatus();
  }
  if (rc != 0 && rc != LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED) {
    return session_->Fault("waiting for the end of a command's output");
  }
  // Output that came before the answer is in libssh2's hands now.
  if (absl::Status status = Read(0, &stdout_, must_stop); !status.ok()) return status;
  if (absl::Status status = Read(SSH_EXTENDED_DATA_STDERR, &stderr_, must_stop); !status.ok()) {
    return status;
  }
  ++round_trips_;
  quiet_round_trips_ = std::exchange(has_read_, false) ? 0 : quiet_round_trips_ + 1;
  return absl::OkStatus();
}

absl::Status SshExec::CheckEnd() {
  const bool is_drained = quiet_round_trips_ >= kQuietRoundTrips || round_trips_ >= kMaxRoundTrips;
  if (libssh2_channel_eof(channel_) == 1) {
    // The exit status comes before the host's close.
    const int rc = libssh2_channel_wait_closed(channel_);
    if (IsWaiting(rc) && !is_drained) return absl::OkStatus();
    if (rc != 0 && session_->is_broken()) return session_->Fault("waiting for a command's end");
    TakeExit();
    return absl::OkStatus();
  }
  if (is_drained) TakeExit();
  return absl::OkStatus();
}

void SshExec::TakeExit() {
  state_ = State::kEnded;
  result_.exit_code = libssh2_channel_get_exit_status(channel_);
  char* name = nullptr;
  libssh2_channel_get_exit_signal(channel_, &name, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (name == nullptr) return;
  result_.signal = name;
  libssh2_free(session_->raw(), name);
}

ExecResult SshExec::TakeResult() {
  result_.has_begun = stdout_.has_begun();
  if (result_.noise.empty()) result_.noise = stdout_.noise() + stderr_.noise();
  result_.stdout_data = std::move(stdout_.data());
  result_.stderr_data = std::move(stderr_.data());
  return std::move(result_);
}

absl::Status SshExec::StepClosing() {
  const int rc = libssh2_channel_free(channel_);
  if (IsWaiting(rc)) return absl::OkStatus();
  if (rc != 0 && session_->is_broken()) return session_->Fault("closing a channel");
  is_closed_ = true;
  return absl::OkStatus();
}

}  // namespace muster::hosts
