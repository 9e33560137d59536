#include "agents/hosts/ssh_link.h"

#include <poll.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "agents/hosts/host_keys.h"
#include "agents/hosts/steady_now.h"
#include "contract/message_of.h"
#include "daemon/log.h"
#include "fmt/format.h"
#include "sync/mutex.h"

namespace muster::hosts {
namespace {

constexpr char kStops[] = "the agent stops";

// This payload of a status has the time as absl writes durations.
constexpr char kNextAttempt[] = "muster.dev/next-attempt";

// It is long enough for all hosts to be tried, each in all its steps.
absl::Duration ConnectPatience(const SshConfig& config) {
  const absl::Duration each =
      config.connect_timeout + config.handshake_timeout + config.auth_timeout;
  return each * static_cast<int64_t>(config.hosts.size()) + absl::Seconds(30);
}

}  // namespace

std::optional<absl::Duration> NextAttemptOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kNextAttempt);
  absl::Duration next;
  if (!payload.has_value() || !absl::ParseDuration(std::string(*payload), &next))
    return std::nullopt;
  return next;
}

SshLink::SshLink(SshConfig config)
    : config_(std::move(config)), backoff_(config_.min_backoff), thread_([this] { Loop(); }) {}

SshLink::~SshLink() { Stop(); }

void SshLink::Stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  stop_.Set();
  wakeup_.Set();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<ExecResult> SshLink::Exec(ExecRequest request) {
  const absl::Duration timeout = request.timeout;
  return Wait(std::make_shared<SshCall>(std::move(request), timeout));
}

absl::Status SshLink::Connect() {
  return Wait(std::make_shared<SshCall>(std::nullopt, ConnectPatience(config_))).status();
}

std::string SshLink::host_in_use() const {
  const MutexLock lock(mutex_);
  return host_in_use_;
}

void SshLink::Start(ExecRequest request,
                    std::function<void(const absl::StatusOr<ExecResult>&)> on_finish) {
  const auto call = std::make_shared<SshCall>(std::move(request), std::move(on_finish));
  if (!Push(call)) call->Finish(absl::UnavailableError(kStops));
}

bool SshLink::Push(const std::shared_ptr<SshCall>& call) {
  {
    const MutexLock lock(mutex_);
    if (is_stopping_) return false;
    queue_.push_back(call);
  }
  wakeup_.Set();
  return true;
}

absl::StatusOr<ExecResult> SshLink::Wait(const std::shared_ptr<SshCall>& call) {
  if (!Push(call)) return absl::UnavailableError(kStops);
  if (!call->WaitUntilDeadline() && Withdraw(call)) {
    return absl::UnavailableError(
        "it was not started: no connection, or no free channel on it, within its time-out");
  }
  return call->Take();
}

bool SshLink::Withdraw(const std::shared_ptr<SshCall>& call) {
  const MutexLock lock(mutex_);
  return std::erase(queue_, call) != 0;
}

void SshLink::Loop() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (is_stopping_) break;
    }
    if (WantsWork() && EnsureSession()) StartCalls();
    if (channels_ != nullptr) {
      const absl::Status status = channels_->Step();
      if (!status.ok()) {
        LogEvent(spdlog::level::warn, "ssh_lost",
                 {{"host", channels_->session().host().ToString()}, {"error", MessageOf(status)}});
        DropSession(status);
        continue;
      }
      GiveBackRefused();
      if (WantsWork() && channels_->has_room()) continue;
    }
    WaitForWork();
  }
  DropSession(absl::UnavailableError(kStops));
  FailQueue(absl::UnavailableError(kStops));
}

bool SshLink::WantsWork() {
  const MutexLock lock(mutex_);
  return !queue_.empty();
}

void SshLink::WaitForWork() {
  pollfd fds[] = {{wakeup_.fd(), POLLIN, 0}, {-1, 0, 0}};
  int wait_ms = -1;
  if (channels_ != nullptr) {
    fds[1] = {channels_->session().fd(), channels_->poll_events(), 0};
    const absl::Duration wait = channels_->NextTime() - SteadyNow();
    wait_ms = static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(wait) + 1, 0, 60'000));
  }
  if (poll(fds, 2, wait_ms) > 0 && fds[0].revents != 0) wakeup_.Clear();
}

bool SshLink::EnsureSession() {
  if (channels_ != nullptr) return true;
  const absl::Duration now = SteadyNow();
  if (now < next_attempt_) {
    absl::Status early = last_error_;
    early.SetPayload(kNextAttempt, absl::Cord(absl::FormatDuration(next_attempt_ - now)));
    FailQueue(early);
    return false;
  }
  absl::StatusOr<std::unique_ptr<SshSession>> session = OpenAny();
  if (!session.ok()) {
    last_error_ = session.status();
    const absl::Duration backoff = backoff_;
    next_attempt_ = SteadyNow() + backoff;
    backoff_ = std::min(backoff * 2, config_.max_backoff);
    LogEvent(spdlog::level::err, "ssh_not_connected",
             {{"error", MessageOf(last_error_)}, {"retry_in", absl::FormatDuration(backoff)}});
    FailQueue(last_error_);
    return false;
  }
  backoff_ = config_.min_backoff;
  const std::string host = (*session)->host().ToString();
  LogEvent(spdlog::level::info, "ssh_connected", {{"host", host}, {"user", config_.user}});
  channels_ = std::make_unique<SshChannels>(&config_, *std::move(session));
  const MutexLock lock(mutex_);
  host_in_use_ = host;
  return true;
}

absl::StatusOr<std::unique_ptr<SshSession>> SshLink::OpenAny() {
  // The keys are read anew each time: the operator may have mended the file.
  const absl::StatusOr<HostKeys> host_keys = HostKeys::Load(config_);
  if (!host_keys.ok()) return host_keys.status();
  std::string errors;
  for (const LoginHost& host : config_.hosts) {
    absl::StatusOr<std::unique_ptr<SshSession>> session =
        SshSession::Open(config_, *host_keys, host, stop_.fd());
    // The operator must look at a host that was reached and does not suit us; the next host would
    // only hide the problem.
    if (session.ok() || !absl::IsUnavailable(session.status())) return session;
    errors += (errors.empty() ? "" : "; ") + MessageOf(session.status());
  }
  return absl::UnavailableError(fmt::format("no login host can be reached: {}", errors));
}

void SshLink::StartCalls() {
  const MutexLock lock(mutex_);
  while (!queue_.empty()) {
    const std::shared_ptr<SshCall>& call = queue_.front();
    if (!call->request().has_value()) {
      call->Finish(ExecResult());
    } else if (channels_->has_room()) {
      channels_->Start(call);
    } else {
      return;
    }
    queue_.pop_front();
  }
}

void SshLink::GiveBackRefused() {
  std::vector<std::shared_ptr<SshCall>> calls = channels_->TakeRefused();
  const MutexLock lock(mutex_);
  queue_.insert(queue_.begin(), calls.begin(), calls.end());
}

void SshLink::DropSession(const absl::Status& fault) {
  if (channels_ == nullptr) return;
  const absl::Status lost = absl::UnavailableError(
      fmt::format("the connection was lost: {}; it may have run, or still run", MessageOf(fault)));
  channels_->Fail(lost);
  GiveBackRefused();
  channels_.reset();
  const MutexLock lock(mutex_);
  host_in_use_.clear();
}

void SshLink::FailQueue(const absl::Status& status) {
  Queue queue;
  {
    const MutexLock lock(mutex_);
    queue.swap(queue_);
  }
  for (const std::shared_ptr<SshCall>& call : queue) call->Finish(status);
}

}  // namespace muster::hosts
