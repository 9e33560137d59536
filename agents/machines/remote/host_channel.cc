#include "agents/machines/remote/host_channel.h"

#include <chrono>
#include <utility>

#include "fmt/format.h"

namespace muster::machines {
namespace {

// The time for the way there and back, beyond a command's own patience.
constexpr absl::Duration kSlack = absl::Seconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<HostChannel>> HostChannel::Open(hosts::SshHost* ssh,
                                                               std::vector<std::string> argv) {
  std::unique_ptr<HostChannel> made(new HostChannel());
  HostChannel* const channel = made.get();
  absl::StatusOr<std::unique_ptr<hosts::SshTalk>> talk =
      ssh->Talk({.argv = std::move(argv)},
                {.hear = [channel](std::string_view bytes) { channel->Hear(bytes); },
                 .ended = [channel](const absl::Status& why) { channel->End(why); }});
  if (!talk.ok()) return talk.status();
  made->talk_ = *std::move(talk);
  return made;
}

absl::StatusOr<HostAnswer> HostChannel::Run(std::vector<std::string> words, std::string input,
                                            absl::Duration patience) {
  HostRequest request = {.id = 0,
                         .patience_ms = absl::ToInt64Milliseconds(patience),
                         .words = std::move(words),
                         .input = std::move(input)};
  {
    const MutexLock lock(mutex_);
    if (!end_.ok()) return end_;
    request.id = ++last_id_;
    commands_[request.id];
  }
  talk_->Say(request.Encode());
  MutexLock lock(mutex_);
  std::optional<HostAnswer>& answer = commands_[request.id];
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience + kSlack);
  while (!answer.has_value() && end_.ok() && lock.WaitUntil(changed_, due)) {
  }
  std::optional<HostAnswer> taken = std::move(answer);
  commands_.erase(request.id);
  if (taken.has_value()) return *std::move(taken);
  if (!end_.ok()) return end_;
  return absl::UnavailableError(fmt::format("muster-supervisor there did not answer within {}",
                                            absl::FormatDuration(patience + kSlack)));
}

void HostChannel::Tell(std::vector<std::string> words) {
  talk_->Say(HostRequest{.words = std::move(words)}.Encode());
}

bool HostChannel::is_open() const {
  const MutexLock lock(mutex_);
  return end_.ok();
}

void HostChannel::Hear(std::string_view bytes) {
  frames_.Add(bytes);
  while (std::optional<HostFrame> frame = frames_.Next()) {
    std::optional<HostAnswer> answer = HostAnswer::Decode(*std::move(frame));
    if (!answer.has_value()) continue;
    const MutexLock lock(mutex_);
    const auto found = commands_.find(answer->id);
    // Nobody waits any more for an answer that comes late.
    if (found != commands_.end()) found->second = std::move(answer);
  }
  if (frames_.is_broken())
    return End(absl::UnavailableError("muster-supervisor there says what nobody understands"));
  changed_.notify_all();
}

void HostChannel::End(const absl::Status& why) {
  {
    const MutexLock lock(mutex_);
    if (end_.ok()) end_ = why;
  }
  changed_.notify_all();
}

}  // namespace muster::machines
