#include "agents/machines/remote/remote_host.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "agents/hosts/steady_now.h"
#include "agents/machines/remote/host_directory.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

// The pause after a report that came before its time and told nothing. Its cause stays there, such
// as a later question of an agent that has the same cluster and name.
constexpr absl::Duration kEarlyReportPause = absl::Milliseconds(100);
// Bytes of a supervisor's words about a failure.
constexpr size_t kMaxHostWordsBytes = 1000;

// The longest pause between two tries to connect: short beside what people wait for, long enough
// for a host that counts failed logins.
constexpr absl::Duration kMaxConnectPause = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteHost>> RemoteHost::Create(Options options, Listener listener) {
  options.config.ssh.max_backoff = std::min(options.config.ssh.max_backoff, kMaxConnectPause);
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> ssh = hosts::SshHost::Create(options.config.ssh);
  if (!ssh.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("host {} (settings machines.ssh_..., and the file of hosts): {}",
                    options.config.name, MessageOf(ssh.status())));
  }
  return std::unique_ptr<RemoteHost>(
      new RemoteHost(std::move(options), std::move(listener), *std::move(ssh)));
}

RemoteHost::RemoteHost(Options options, Listener listener, std::unique_ptr<hosts::SshHost> ssh)
    : options_(std::move(options)),
      listener_(std::move(listener)),
      ssh_(std::move(ssh)),
      lane_(std::make_shared<HostLane>(ssh_.get())),
      sweep_(options_.config.name, options_.keep_work) {}

RemoteHost::~RemoteHost() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  ssh_->Stop();
  lane_->Stop();
  if (report_thread_.joinable()) report_thread_.join();
  if (command_thread_.joinable()) command_thread_.join();
  if (layout_thread_.joinable()) layout_thread_.join();
  if (lease_thread_.joinable()) lease_thread_.join();
}

void RemoteHost::StartThreads() {
  report_thread_ = std::thread([this] { ReportLoop(); });
  command_thread_ = std::thread([this] { CommandLoop(); });
  layout_thread_ = std::thread([this] { LayoutLoop(); });
  lease_thread_ = std::thread([this] { LeaseLoop(); });
}

void RemoteHost::Watch(const std::string& run_key, const std::string& directory, HostStage known) {
  const MutexLock lock(mutex_);
  if (watched_.insert_or_assign(run_key, Watched{.directory = directory, .known = known}).second)
    ++question_;
}

void RemoteHost::Unwatch(const std::string& run_key) {
  const MutexLock lock(mutex_);
  watched_.erase(run_key);
}

void RemoteHost::AskAnew() {
  const MutexLock lock(mutex_);
  // One that is down is asked about all of them when it is back.
  if (reports_channel_ == nullptr || told_ == question_) return;
  told_ = question_;
  reports_channel_->Tell({"again", std::to_string(question_)});
}

void RemoteHost::Start(RankStart start) {
  {
    const MutexLock lock(mutex_);
    commands_.Push(std::move(start));
  }
  changed_.notify_all();
  AskAnew();
}

void RemoteHost::Stop(const std::string& run_key, size_t rank, const std::string& directory) {
  std::optional<RankStart> unsent;
  {
    const MutexLock lock(mutex_);
    unsent = commands_.Push(RankStop{.run_key = run_key, .rank = rank, .directory = directory});
  }
  changed_.notify_all();
  if (unsent.has_value()) {
    listener_(StartDone{.run_key = run_key, .rank = rank, .status = WasToEnd()});
  }
}

std::optional<FilesSent> RemoteHost::LayoutOf(const std::string& run_key, size_t rank) const {
  const MutexLock lock(mutex_);
  return commands_.LayoutOf(run_key, rank);
}

void RemoteHost::Clean(const std::string& directory, bool logs) {
  {
    const MutexLock lock(mutex_);
    commands_.Clean(directory, logs);
  }
  changed_.notify_all();
}

void RemoteHost::Sweep() {
  if (options_.keep_work == absl::InfiniteDuration()) return;
  {
    const MutexLock lock(mutex_);
    commands_.Sweep();
  }
  changed_.notify_all();
}

// ---- reports

void RemoteHost::ReportLoop() {
  bool was_up = false;
  std::string told;
  absl::Duration pause = kHostRetry;
  while (true) {
    absl::StatusOr<std::optional<HostIsUp>> is_up = Prepare();
    const bool can_be_asked = is_up.ok();
    const absl::Status status = can_be_asked ? Report(*std::move(is_up)) : is_up.status();
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      // The host may have other resources when it comes back.
      if (!status.ok()) commands_channel_ = reports_channel_ = nullptr;
    }
    if (status.ok()) {
      was_up = true;
      told.clear();
      pause = kHostRetry;
      continue;
    }
    // The words are the same from one try to the next, because what changes is in fields.
    const std::string words = MessageOf(status);
    if (was_up || told != words) {
      LogEvent(spdlog::level::warn, "host_down",
               {{"host", options_.config.name},
                {"error", words},
                {"retry_in", absl::FormatDuration(
                                 std::max(pause, hosts::NextAttemptOf(status).value_or(pause)))}});
    }
    was_up = false;
    told = words;
    listener_(HostIsDown{told});
    if (!Pause(pause)) return;
    // A preparation is work for the host; the pauses between tries to connect grow by themselves.
    pause = can_be_asked ? std::min(pause * 2, kMaxConnectPause) : kHostRetry;
  }
}

absl::Status RemoteHost::Report(std::optional<HostIsUp> is_up) {
  const absl::Time asked = absl::Now();
  const absl::Duration began = hosts::SteadyNow();
  // The first report comes at once, because what the host has decides what is started there.
  const absl::Duration patience = is_up.has_value() ? absl::ZeroDuration() : kReportPatience;
  absl::StatusOr<Answer> answer = AskForReport(patience);
  if (!answer.ok()) return answer.status();
  const absl::Time answered = absl::Now();
  const absl::Duration took = hosts::SteadyNow() - began;
  clock_.Hear(answer->report, asked, answered);
  clock_.Correct(&answer->report);
  if (is_up.has_value()) {
    LogEvent(spdlog::level::info, "host_up",
             {{"host", options_.config.name},
              {"directory", is_up->directory},
              {"clock_ahead", absl::FormatDuration(clock_.ahead())}});
    listener_(*std::move(is_up));
  }
  const bool was_for_nothing =
      !TakeStages(answer->report) && IsLatest(answer->question) && took < patience;
  listener_(HostReported{std::move(answer->report)});
  {
    const MutexLock lock(mutex_);
    commands_.Resume();
  }
  changed_.notify_all();
  if (was_for_nothing) Pause(kEarlyReportPause);
  return absl::OkStatus();
}

bool RemoteHost::Pause(absl::Duration time) {
  MutexLock lock(mutex_);
  const auto due = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
  while (!stopping_ && lock.WaitUntil(changed_, due)) {
  }
  return !stopping_;
}

absl::StatusOr<std::optional<HostIsUp>> RemoteHost::Prepare() {
  {
    const MutexLock lock(mutex_);
    if (reports_channel_ != nullptr) return std::nullopt;
  }
  if (absl::Status s = ssh_->Connect(); !s.ok()) return s;
  absl::StatusOr<std::string> directory =
      HostDirectory(options_.directory, options_.cluster, options_.config.name, ssh_.get(),
                    hosts::kDefaultCommandTimeout);
  if (!directory.ok()) return directory.status();
  const absl::StatusOr<std::string> program =
      PutSupervisor(*options_.program, *directory, ssh_.get());
  if (!program.ok()) return program.status();
  const std::string runs = *directory + "/runs";
  absl::StatusOr<Machine> machine = ReadRemoteMachine(options_.config, *ssh_);
  if (!machine.ok()) return machine.status();
  absl::StatusOr<std::unique_ptr<HostChannel>> commands =
      HostChannel::Open(ssh_.get(), {*program, "serve"});
  if (!commands.ok()) return commands.status();
  absl::StatusOr<std::unique_ptr<HostChannel>> reports =
      HostChannel::Open(ssh_.get(), {*program, "watch", runs});
  if (!reports.ok()) return reports.status();
  const absl::StatusOr<LimitsFound> limits = FindLimits(commands->get());
  if (!limits.ok()) return limits.status();
  TellLimits(options_.limits, *limits, &*machine);
  if (absl::Status s = TellContainers(options_.container_runtime, *ssh_, &*machine); !s.ok())
    return s;
  const MutexLock lock(mutex_);
  commands_channel_ = *std::move(commands);
  reports_channel_ = *std::move(reports);
  runs_directory_ = runs;
  if (options_.files != nullptr) {
    trees_ = std::make_shared<uploads::HostTrees>(ssh_.get(), *directory + "/files",
                                                  options_.files->cache());
  }
  return HostIsUp{.machine = *std::move(machine), .directory = *std::move(directory)};
}

absl::StatusOr<LimitsFound> RemoteHost::FindLimits(HostChannel* channel) {
  if (!options_.limits) return LimitsFound{};
  const absl::StatusOr<HostAnswer> answer = channel->Run({"limits"}, "", kCommandPatience);
  if (!answer.ok()) return answer.status();
  const std::optional<LimitsFound> found = LimitsFound::Decode(answer->output);
  if (found.has_value()) return *found;
  return absl::UnavailableError("muster-supervisor there does not tell which limits runs can have");
}

absl::StatusOr<RemoteHost::Answer> RemoteHost::AskForReport(absl::Duration patience) {
  std::string question;
  int64_t number = 0;
  std::shared_ptr<HostChannel> channel;
  {
    const MutexLock lock(mutex_);
    channel = reports_channel_;
    number = question_;
    for (const auto& [run_key, watched] : watched_)
      question += fmt::format("{} {}\n", LetterOf(watched.known), watched.directory);
  }
  // The host is of no use without the other channel.
  if (const auto commands = CommandsChannel(); commands == nullptr || !commands->is_open())
    return NoAnswer();
  const absl::StatusOr<std::string> answer =
      Give(channel, {"report", std::to_string(number)}, std::move(question), patience);
  if (!answer.ok()) return answer.status();
  std::optional<HostReport> report = HostReport::Decode(*answer);
  if (!report.has_value()) return absl::UnavailableError("its report is not whole");
  return Answer{.report = *std::move(report), .question = number};
}

bool RemoteHost::TakeStages(const HostReport& report) {
  bool is_news = false;
  for (const RankReport& rank : report.runs)
    is_news = NoteStage(rank.run_key, rank.stage) || is_news;
  return is_news;
}

bool RemoteHost::NoteStage(const std::string& run_key, HostStage stage) {
  const MutexLock lock(mutex_);
  const auto found = watched_.find(run_key);
  // A stage only goes forward: answers of reports and of commands may overtake each other.
  if (found == watched_.end() || stage <= found->second.known) return false;
  found->second.known = stage;
  return true;
}

bool RemoteHost::IsLatest(int64_t question) const {
  const MutexLock lock(mutex_);
  return question_ == question;
}

// ---- commands

void RemoteHost::CommandLoop() {
  while (true) {
    HostCommand command;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && commands_.IsEmpty()) lock.Wait(changed_);
      if (stopping_) return;
      command = commands_.Pop();
    }
    std::visit([this](const auto& c) { Do(c); }, command);
  }
}

void RemoteHost::Do(const RankStart& start) {
  StartDone done = StartRank(start);
  if (done.status.ok()) NoteStage(start.run_key, HostStage::kClaimed);
  listener_(std::move(done));
}

void RemoteHost::Do(const RankStop& stop) {
  const absl::Status status =
      RunSupervisor({"stop", stop.directory}, "", kCommandPatience).status();
  listener_(StopDone{.run_key = stop.run_key, .rank = stop.rank, .status = status});
}

void RemoteHost::Do(const CleanCommand& clean) {
  std::string lines;
  for (const std::string& directory : clean.directories) lines += directory + "\n";
  const absl::Status status =
      RunSupervisor({clean.logs ? "clean-logs" : "clean"}, std::move(lines), kCommandPatience)
          .status();
  if (!absl::IsUnavailable(status)) {
    listener_(CleanDone{.directories = clean.directories, .logs = clean.logs});
    return;
  }
  const MutexLock lock(mutex_);
  commands_.Defer(clean);
}

void RemoteHost::Do(const SweepCommand&) {
  const absl::StatusOr<std::string> answer =
      RunSupervisor(sweep_.Words(RunsDirectory()), "", kCommandPatience);
  // A host that is down is swept when it is back.
  if (answer.ok() && sweep_.Take(*answer)) Sweep();
}

absl::Status RemoteHost::Signal(const std::string& directory, const ProcessSignal& signal) {
  return RunSupervisor(SignalWords(directory, signal), "", kSignalPatience).status();
}

std::shared_ptr<HostChannel> RemoteHost::CommandsChannel() const {
  const MutexLock lock(mutex_);
  return commands_channel_;
}

std::string RemoteHost::RunsDirectory() const {
  const MutexLock lock(mutex_);
  return runs_directory_;
}

absl::Status RemoteHost::NoAnswer() const {
  return absl::UnavailableError(fmt::format("{} does not answer", options_.config.name));
}

absl::StatusOr<std::string> RemoteHost::RunSupervisor(std::vector<std::string> words,
                                                      std::string input, absl::Duration patience) {
  return Give(CommandsChannel(), std::move(words), std::move(input), patience);
}

absl::StatusOr<std::string> RemoteHost::Give(const std::shared_ptr<HostChannel>& channel,
                                             std::vector<std::string> words, std::string input,
                                             absl::Duration patience) const {
  if (channel == nullptr) return NoAnswer();
  absl::StatusOr<HostAnswer> answer = channel->Run(std::move(words), std::move(input), patience);
  // A program that is not there any more is put there when the host is prepared again.
  if (!answer.ok()) return answer.status();
  if (answer->exit_code == kHostDone && answer->signal == 0) return std::move(answer->output);
  const std::string complaint(absl::StripAsciiWhitespace(
      absl::string_view(answer->complaint).substr(0, kMaxHostWordsBytes)));
  if (answer->signal == 0 && answer->exit_code == kHostFailed)
    return absl::FailedPreconditionError(complaint);
  return absl::UnavailableError(fmt::format("muster-supervisor ended with {}, signal {}: {}",
                                            answer->exit_code, answer->signal, complaint));
}

}  // namespace muster::machines
