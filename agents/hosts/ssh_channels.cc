#include "agents/hosts/ssh_channels.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace muster::hosts {
namespace {

// A busy host takes seconds to start a shell that kills.
constexpr absl::Duration kKillTimeout = absl::Seconds(10);
// A host that had no channel for the killing is asked again after so long.
constexpr absl::Duration kKillRetry = absl::Milliseconds(100);
// The time to the first look at a command's process. Most commands end sooner and need none; later
// looks are ever more rare.
constexpr absl::Duration kFirstProbe = absl::Seconds(1);
constexpr absl::Duration kMaxProbe = absl::Seconds(30);
constexpr absl::Duration kProbeTimeout = absl::Seconds(10);
// Bytes that a helper of ours may print.
constexpr size_t kHelperBytes = 4096;
// New bytes of the host may bring any channel further, so all are asked again; then the link looks
// at its queue.
constexpr int kMaxPasses = 16;
// A host may refuse a session because it has not yet cleared away those that have just ended. Each
// try is a round trip, in which it does that.
constexpr int kMaxRefusalsInVain = 20;

}  // namespace

SshChannels::Channel::Channel(Purpose purpose, uint64_t number, SshSession* session,
                              std::shared_ptr<SshCall> call)
    : purpose(purpose),
      number(number),
      call(std::move(call)),
      exec(session, this->call == nullptr ? nullptr : &*this->call->request()),
      start(SteadyNow()),
      next_probe(start + kFirstProbe),
      probe_interval(kFirstProbe) {}

SshChannels::SshChannels(const SshConfig* config, std::unique_ptr<SshSession> session)
    : config_(config),
      session_(std::move(session)),
      limit_(config->max_channels),
      last_ping_(SteadyNow()) {}

bool SshChannels::has_room() const {
  int calls = 0;
  int talks = 0;
  for (const Channel& channel : channels_) {
    // A program that is to be killed needs the next channel that is free.
    if (!channel.is_answered && !channel.verdict.ok()) return false;
    if (channel.purpose != Purpose::kCall) continue;
    ++calls;
    if (channel.call->request()->talk != nullptr) ++talks;
  }
  // Talks last, and what ends soon has its turn beside them.
  return refused_.empty() && calls < std::max(limit_, talks + 1);
}

// A program with which its caller talks leaves nobody behind who holds its outputs.
bool SshChannels::IsProbed(const Channel& channel) {
  return channel.call->request()->talk == nullptr && !channel.exec.is_draining();
}

SshChannels::Channel& SshChannels::Add(Purpose purpose, std::shared_ptr<SshCall> call) {
  return channels_.emplace_back(purpose, ++last_number_, session_.get(), std::move(call));
}

void SshChannels::Start(std::shared_ptr<SshCall> call) { Add(Purpose::kCall, std::move(call)); }

void SshChannels::Serve(Purpose purpose, const Channel& target, RemoteScript script) {
  const absl::Duration timeout = purpose == Purpose::kKill ? kKillTimeout : kProbeTimeout;
  ExecRequest request{.script = std::move(script),
                      .input = {},
                      .timeout = timeout,
                      .max_stdout_bytes = kHelperBytes,
                      .max_stderr_bytes = kHelperBytes};
  Add(purpose, std::make_shared<SshCall>(std::move(request), timeout)).target = target.number;
}

SshChannels::Channel* SshChannels::Find(uint64_t number) {
  for (Channel& channel : channels_) {
    if (channel.number == number) return &channel;
  }
  return nullptr;
}

bool SshChannels::IsBusyWith(Purpose purpose) const {
  return std::any_of(channels_.begin(), channels_.end(), [&](const Channel& channel) {
    return channel.purpose == purpose && !channel.is_answered;
  });
}

absl::Status SshChannels::Step() {
  if (absl::Status status = KeepAlive(); !status.ok()) return status;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const uint64_t bytes = session_->bytes_received();
    if (absl::Status status = StepChannels(); !status.ok()) return status;
    if (sender_ != 0) return absl::OkStatus();
    bool has_changed = session_->bytes_received() != bytes;
    for (Channel& channel : channels_) has_changed = React(channel) || has_changed;
    std::erase_if(channels_, [](const Channel& channel) { return channel.exec.is_closed(); });
    if (!dead_end_.ok()) return dead_end_;
    if (!has_changed) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status SshChannels::StepChannels() {
  for (Channel& channel : channels_) {
    if (sender_ != 0 && sender_ != channel.number) continue;
    const bool opens =
        !channel.exec.has_channel() && channel.exec.state() == SshExec::State::kOpening;
    if (opens && opener_ != 0 && opener_ != channel.number) continue;
    if (opens) opener_ = channel.number;
    if (absl::Status status = channel.exec.Step(); !status.ok()) return status;
    const bool is_open =
        channel.exec.has_channel() || channel.exec.state() == SshExec::State::kRefused;
    if (opener_ == channel.number && channel.exec.has_channel()) {
      has_granted_ = true;
      refusals_in_vain_ = 0;
    }
    if (opener_ == channel.number && is_open) opener_ = 0;
    sender_ = session_->is_sending() ? channel.number : 0;
    if (sender_ != 0) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status SshChannels::KeepAlive() {
  const absl::Duration now = SteadyNow();
  const absl::Duration silence = now - session_->last_received();
  if (silence > config_->keepalive_interval * config_->keepalive_limit) {
    return absl::UnavailableError(fmt::format(
        "{} has said nothing for {}", session_->host().ToString(), absl::FormatDuration(silence)));
  }
  // Without a channel nobody reads the host's own messages: its end, or its own question for a sign
  // of life.
  pollfd fd = {session_->fd(), POLLIN, 0};
  const bool is_unread = channels_.empty() && poll(&fd, 1, 0) > 0;
  const bool is_due =
      silence >= config_->keepalive_interval && now - last_ping_ >= config_->keepalive_interval;
  if (!is_unread && !is_due) return absl::OkStatus();
  last_ping_ = now;
  Add(Purpose::kPing, nullptr);
  return absl::OkStatus();
}

bool SshChannels::React(Channel& channel) {
  if (channel.purpose == Purpose::kPing) {
    const SshExec::State state = channel.exec.state();
    if (channel.is_answered || state == SshExec::State::kOpening) return false;
    channel.is_answered = true;
    channel.exec.Close();
    return true;
  }
  return channel.purpose == Purpose::kCall ? ReactToCall(channel) : ReactToHelper(channel);
}

bool SshChannels::ReactToCall(Channel& channel) {
  if (channel.is_answered) return false;
  if (!channel.verdict.ok()) return Watch(channel);
  switch (channel.exec.state()) {
    case SshExec::State::kRefused:
      OnRefused(channel);
      return true;
    case SshExec::State::kEnded:
      Answer(channel, channel.exec.TakeResult());
      return true;
    case SshExec::State::kTooLong:
      Condemn(channel, TooLongError(channel.exec.is_stdout_too_long()));
      return true;
    case SshExec::State::kOpening:
    case SshExec::State::kRunning:
      return Watch(channel);
  }
  return false;
}

// Time-outs, and programs that have ended while others hold their outputs.
bool SshChannels::Watch(Channel& channel) {
  const absl::Duration now = SteadyNow();
  if (!channel.verdict.ok()) {
    if (now >= channel.kill_deadline) {
      Answer(channel,
             absl::UnavailableError("it is over its limits, but the host did not kill it in time"));
      return true;
    }
    if (now < channel.next_kill || IsBusyWith(Purpose::kKill)) return false;
    Serve(Purpose::kKill, channel, WrapKill(channel.exec.pid()));
    return true;
  }
  if (!channel.exec.has_begun() && now - channel.start >= config_->channel_timeout) {
    Answer(channel,
           absl::UnavailableError(fmt::format("the login shell on {} did not start it within {}",
                                              session_->host().ToString(),
                                              absl::FormatDuration(config_->channel_timeout))));
    return true;
  }
  if (now >= channel.call->deadline()) {
    Condemn(channel, absl::DeadlineExceededError("its time is over"));
    return true;
  }
  if (!IsProbed(channel) || now < channel.next_probe || channel.exec.pid() <= 0 ||
      IsBusyWith(Purpose::kProbe)) {
    return false;
  }
  channel.probe_interval = std::min(channel.probe_interval * 2, kMaxProbe);
  channel.next_probe = now + channel.probe_interval;
  Serve(Purpose::kProbe, channel, WrapIsAlive(channel.exec.pid()));
  return true;
}

void SshChannels::Condemn(Channel& channel, absl::Status verdict) {
  if (channel.exec.pid() <= 0) {
    Answer(channel,
           absl::UnavailableError(fmt::format(
               "the login shell on {} did not start it in time, or said more than {} bytes",
               session_->host().ToString(), kMaxNoiseBytes)));
    return;
  }
  channel.verdict = std::move(verdict);
  channel.next_kill = SteadyNow();
  channel.kill_deadline = channel.next_kill + kKillTimeout;
}

bool SshChannels::ReactToHelper(Channel& channel) {
  if (channel.is_answered) return false;
  const SshExec::State state = channel.exec.state();
  const bool is_late = SteadyNow() >= channel.call->deadline();
  const bool is_over = state == SshExec::State::kEnded || state == SshExec::State::kRefused ||
                       state == SshExec::State::kTooLong;
  if (!is_over && !is_late) return false;
  channel.is_answered = true;
  channel.exec.Close();
  Channel* const target = Find(channel.target);
  if (target == nullptr || target->is_answered) return true;
  const ExecResult result =
      state == SshExec::State::kEnded ? channel.exec.TakeResult() : ExecResult();
  if (channel.purpose == Purpose::kProbe) {
    if (result.has_begun && result.exit_code != 0) target->exec.Drain();
  } else if (result.has_begun) {
    Answer(*target, target->verdict);
  } else {
    OnKillRefused(*target);
  }
  return true;
}

// The end of a call that goes well leaves a channel for the killing. If there is none, only a new
// connection helps the next calls.
void SshChannels::OnKillRefused(Channel& target) {
  target.next_kill = SteadyNow() + kKillRetry;
  const bool has_hope = std::any_of(channels_.begin(), channels_.end(), [](const Channel& other) {
    return other.purpose == Purpose::kCall && !other.is_answered && other.verdict.ok();
  });
  if (has_hope) return;
  dead_end_ = absl::UnavailableError(
      fmt::format("{} allows too few sessions on a connection for killing what is over its time; "
                  "raise MaxSessions of its sshd",
                  session_->host().ToString()));
}

void SshChannels::OnRefused(Channel& channel) {
  const auto others = std::count_if(channels_.begin(), channels_.end(), [](const Channel& other) {
    return other.exec.has_channel() && !other.exec.is_closed();
  });
  if (others == 0 && (!has_granted_ || ++refusals_in_vain_ > kMaxRefusalsInVain)) {
    Answer(channel, absl::UnavailableError(
                        fmt::format("{} grants no session on its connection (MaxSessions)",
                                    session_->host().ToString())));
    return;
  }
  // One of those that it grants stays free for killing.
  if (others > 0) limit_ = std::clamp(static_cast<int>(others) - 1, 1, limit_);
  refused_.push_back(channel.call);
  channel.is_answered = true;
  channel.exec.Close();
}

void SshChannels::Answer(Channel& channel, absl::StatusOr<ExecResult> result) {
  channel.is_answered = true;
  channel.exec.Close();
  channel.call->Finish(std::move(result));
}

void SshChannels::Fail(const absl::Status& fault) {
  for (Channel& channel : channels_) {
    if (channel.purpose == Purpose::kCall && !channel.is_answered) channel.call->Finish(fault);
  }
  channels_.clear();
}

std::vector<std::shared_ptr<SshCall>> SshChannels::TakeRefused() {
  return std::exchange(refused_, {});
}

absl::Duration SshChannels::NextTime() const {
  absl::Duration next =
      std::max(session_->last_received(), last_ping_) + config_->keepalive_interval;
  const bool is_probing = IsBusyWith(Purpose::kProbe);
  for (const Channel& channel : channels_) {
    if (channel.call == nullptr || channel.is_answered) continue;
    if (!channel.verdict.ok()) {
      next = std::min(
          {next, std::max(channel.next_kill, SteadyNow() + kKillRetry), channel.kill_deadline});
      continue;
    }
    next = std::min(next, channel.call->deadline());
    if (channel.purpose != Purpose::kCall) continue;
    if (!channel.exec.has_begun()) next = std::min(next, channel.start + config_->channel_timeout);
    if (!is_probing && IsProbed(channel)) next = std::min(next, channel.next_probe);
  }
  return next;
}

// Nothing is read while a packet is sent in part: sshd takes what it is sent, even while it has
// something to say.
short SshChannels::poll_events() const { return sender_ != 0 ? POLLOUT : POLLIN; }

}  // namespace muster::hosts
