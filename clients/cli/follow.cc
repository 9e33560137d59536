#include "clients/cli/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "clients/cli/labelled_lines.h"
#include "clients/cli/report.h"
#include "clients/cli/silent_clusters.h"
#include "clients/cli/tail.h"
#include "clients/cli/text.h"
#include "contract/queue_words.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// As many as one WatchJobs takes.
constexpr size_t kMaxWatched = 1000;
// The rest of a log arrives soon after its job's end, or the broker says that it does not; this is
// for a broker that says neither.
constexpr auto kLogGrace = std::chrono::seconds(60);

void NoteLogEnd(Terminal& terminal, const v1::ReadLogRequest& request, v1::LogEnd end) {
  const std::string log =
      fmt::format("the log of job {} ({}, rank {})", request.job_id(),
                  request.stream() == v1::LOG_STREAM_STDERR ? "standard error" : "standard output",
                  request.rank());
  switch (end) {
    case v1::LOG_END_TRUNCATED:
      return terminal.Note(log +
                           " ends here: it has more bytes than the broker keeps for a job; "
                           "the rest is on the cluster only");
    case v1::LOG_END_INCOMPLETE:
      // Also with -q: what was written is not the log.
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

// One thread for each output of a run, each passing its log on to the end.
class LogFollowers {
 public:
  LogFollowers(Session* session, const LogChoice& choice) : session_(*session), choice_(choice) {}

  uint32_t first_run() const { return choice_.first_run; }

  void Start(uint64_t job, uint32_t run) {
    // A run that begins while we look is wanted from its beginning.
    const std::optional<uint64_t> tail =
        run == choice_.first_run ? choice_.tail_lines : std::nullopt;
    for (LogPart& part : LogParts(job, run, session_.call.raw, choice_)) {
      std::promise<void> promise;
      done_.push_back(promise.get_future());
      // Detached: if a log never ends, the process must not wait for it. It uses what lives as long
      // as the process.
      std::thread([&client = session_.client, &terminal = session_.terminal, tail,
                   part = std::move(part), pieces = pieces_,
                   promise = std::move(promise)]() mutable {
        absl::Status status = tail ? SkipToTail(client, *tail, &part.request) : absl::OkStatus();
        part.request.set_follow(true);
        if (status.ok()) {
          status = CopyLog(client, terminal, part.request, part.target, pieces.get()).status();
        }
        if (!status.ok()) terminal.Err(ErrorText(status));
        promise.set_value();
      }).detach();
    }
  }

  // Call it after the job has ended.
  void Finish() {
    for (std::future<void>& log : done_) {
      uint64_t before = pieces_->load();
      while (log.wait_for(kLogGrace) != std::future_status::ready) {
        const uint64_t now = pieces_->load();
        if (now == before) {
          session_.terminal.Note("the rest of the log has not arrived; try muster logs later");
          return;
        }
        before = now;
      }
    }
  }

 private:
  Session& session_;
  const LogChoice choice_;
  std::vector<std::future<void>> done_;
  const std::shared_ptr<std::atomic<uint64_t>> pieces_ = std::make_shared<std::atomic<uint64_t>>(0);
};

bool Waits(v1::JobState state) {
  return state == v1::JOB_STATE_QUEUED || state == v1::JOB_STATE_PENDING;
}

// Who has the job and says nothing of it.
enum class Silence { kNone, kHost, kCluster };

// Says once how a job stands and, while it waits, why; not each step of it. Says when its cluster
// or a host of it has gone silent, and when there is word from it again.
class Progress {
 public:
  enum class Told { kAll, kTroubleAlone };  // that a job waits, or is silent, is trouble

  Progress(client::Client* client, Terminal* terminal, Told told = Told::kAll)
      : client_(*client), terminal_(*terminal), told_(told), silent_(client) {}

  // The job as it is now: what had happened before anyone waited is not news.
  void Saw(const v1::Job& seen_job) {
    if (contract::IsTerminal(seen_job.state())) {
      last_.erase(seen_job.id());
      return;
    }
    if (IsUnexplained(seen_job)) {
      Look(seen_job.id());
    } else {
      Tell(seen_job);
    }
  }

  // Reasons change without a step, and agents go silent, so that jobs are asked about now and then.
  void LookAgain() {
    silent_.Refresh();
    std::vector<uint64_t> waiting;
    for (const auto& [id, seen] : last_) {
      if (waiting.size() < kMaxLookedAt) waiting.push_back(id);
    }
    for (uint64_t id : waiting) {
      if (!Look(id)) return;
    }
  }

 private:
  // A step does not say why a queued job waits. One that was submitted just now does so for a
  // moment only, which is not worth a question.
  bool IsUnexplained(const v1::Job& job) const {
    constexpr absl::Duration kMoment = absl::Seconds(1);
    return job.state() == v1::JOB_STATE_QUEUED && job.reason().empty() &&
           last_.size() < kMaxLookedAt && absl::Now() - ToTime(job.create_time()) > kMoment;
  }

  // False: the job could not be asked about, and the stream will tell what is wrong.
  bool Look(uint64_t id) {
    v1::GetJobRequest request;
    request.set_job_id(id);
    const auto response = client_.GetJob(request);
    if (!response.ok()) return false;
    if (contract::IsTerminal(response->job().state())) {
      last_.erase(id);
    } else {
      Tell(response->job());
    }
    return true;
  }

  // `explained`: the job with what is known of its cluster.
  static Silence SilenceOf(const v1::Job& job, const v1::Job& explained) {
    if (explained.reason() != job.reason()) return Silence::kCluster;
    const bool is_host_silent = !Waits(job.state()) && contract::SaysHostIsSilent(job.reason());
    return is_host_silent ? Silence::kHost : Silence::kNone;
  }

  void Tell(const v1::Job& seen_job) {
    // Without the time that has passed, which would be news all the time.
    const v1::Job job = silent_.Explained(seen_job);
    const Silence silence = SilenceOf(seen_job, job);
    const bool is_silent = silence != Silence::kNone;
    const std::string reason = Waits(job.state()) || is_silent ? OneLine(job.reason()) : "";
    // What keeps a host from answering may be another thing with each try.
    const Seen seen{job.state(), silence == Silence::kHost ? "" : reason, silence};
    Seen& last = last_[job.id()];
    const Silence before = last.silence;
    const bool is_back = before != Silence::kNone && !is_silent;
    // A reason that goes before its state does is not worth a line.
    if (seen == last || (seen.state == last.state && reason.empty() && !is_back)) return;
    last = seen;
    if (is_back) {
      terminal_.Note(
          before == Silence::kCluster
              ? fmt::format("there is word from cluster {} again", Harmless(job.cluster()))
              : fmt::format("the hosts of job {} answer again", job.id()));
      if (reason.empty()) return;
    }
    if (told_ == Told::kTroubleAlone && reason.empty() && job.state() != v1::JOB_STATE_QUEUED)
      return;
    const bool is_placed = job.state() != v1::JOB_STATE_QUEUED && !job.cluster().empty();
    terminal_.Note(fmt::format("job {} is {}{}{}{}", job.id(), contract::Name(job.state()),
                               is_placed ? " on " : "", is_placed ? Harmless(job.cluster()) : "",
                               reason.empty() ? "" : ": " + reason));
  }

  struct Seen {
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    std::string reason;
    Silence silence = Silence::kNone;
    bool operator==(const Seen&) const = default;
  };
  // Of many jobs, the first ones: they are the next to start.
  static constexpr size_t kMaxLookedAt = 20;

  client::Client& client_;
  Terminal& terminal_;
  const Told told_;
  SilentClusters silent_;
  std::map<uint64_t, Seen> last_;  // of jobs that have not ended
};

absl::StatusOr<v1::Job> GetWhole(Session& session, uint64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto response = session.client.GetJob(request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_job());
}

absl::Status WatchToTheEnd(Session& session, const std::vector<uint64_t>& ids, absl::Time deadline,
                           LogFollowers* logs) {
  v1::WatchJobsRequest request;
  request.mutable_job_ids()->Add(ids.begin(), ids.end());
  request.set_until_terminal(true);
  Progress progress(&session.client, &session.terminal);
  const auto reader =
      session.client.WatchJobs(request, deadline, [&progress] { progress.LookAgain(); });
  uint32_t followed_run = logs == nullptr ? 0 : logs->first_run() - 1;
  while (true) {
    const auto step = reader->Next();
    if (!step.ok()) return step.status();
    if (!step->has_value()) return absl::OkStatus();
    progress.Saw((*step)->job());
    const uint32_t run = (*step)->transition().run();
    if (logs == nullptr || run <= followed_run) continue;
    followed_run = run;
    logs->Start((*step)->job_id(), run);
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::Job>> WaitForJobs(Session& session, const std::vector<uint64_t>& ids,
                                                 absl::Time deadline) {
  for (size_t at = 0; at < ids.size(); at += kMaxWatched) {
    const size_t end = std::min(ids.size(), at + kMaxWatched);
    const std::vector<uint64_t> some(ids.begin() + at, ids.begin() + end);
    const absl::Status status = WatchToTheEnd(session, some, deadline, nullptr);
    if (!status.ok()) return status;
  }
  std::vector<v1::Job> jobs;
  for (uint64_t id : ids) {
    absl::StatusOr<v1::Job> job = GetWhole(session, id);
    if (!job.ok()) return job.status();
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

std::vector<LogPart> LogParts(uint64_t job, uint32_t run, bool raw, const LogChoice& choice) {
  std::vector<LogPart> parts;
  for (uint32_t rank = 0; rank < choice.ranks; ++rank) {
    for (const v1::LogStream stream : {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR}) {
      LogPart& part = parts.emplace_back();
      part.request.set_job_id(job);
      part.request.set_run(run);
      part.request.set_rank(rank);
      part.request.set_stream(stream);
      part.target.fd = stream == v1::LOG_STREAM_STDERR && !choice.is_merged ? 2 : 1;
      part.target.raw = raw;
      if (choice.is_labelled) {
        part.target.label = fmt::format("({}, rank={}) ", Harmless(choice.name), rank);
      }
    }
  }
  return parts;
}

absl::StatusOr<v1::Job> StreamJob(Session& session, uint64_t id, const LogChoice& choice) {
  LogFollowers logs(&session, choice);
  const absl::Status status = WatchToTheEnd(session, {id}, absl::InfiniteFuture(), &logs);
  if (!status.ok()) return status;
  logs.Finish();
  return GetWhole(session, id);
}

void TellWhatKeepsLogFromComing(Session& session, uint64_t id) {
  // Detached: what the log does must not wait for it. It uses what lives as long as the process.
  std::thread([&client = session.client, &terminal = session.terminal, id] {
    v1::WatchJobsRequest request;
    request.add_job_ids(id);
    request.set_until_terminal(true);
    Progress progress(&client, &terminal, Progress::Told::kTroubleAlone);
    const auto reader =
        client.WatchJobs(request, absl::InfiniteFuture(), [&progress] { progress.LookAgain(); });
    while (true) {
      const auto step = reader->Next();
      // If the broker is gone, who reads the log says so.
      if (!step.ok() || !step->has_value()) return;
      progress.Saw((*step)->job());
    }
  }).detach();
}

absl::StatusOr<v1::LogEnd> CopyLog(client::Client& client, Terminal& terminal,
                                   const v1::ReadLogRequest& request, const LogTarget& target,
                                   std::atomic<uint64_t>* pieces) {
  const bool is_terminal = target.fd == 1 ? terminal.out_is_terminal() : terminal.err_is_terminal();
  const bool is_harmless = is_terminal && !target.raw;
  const auto put = [&](std::string_view text) {
    if (text.empty()) return;
    target.fd == 1 ? terminal.Out(text) : terminal.Err(text);
  };
  LabelledLines lines(target.label);
  const auto write = [&](std::string_view text) {
    target.label.empty() ? put(text) : put(lines.Next(text));
  };
  HarmlessStream harmless;
  uint64_t expected = request.offset();
  v1::LogEnd end = v1::LOG_END_UNSPECIFIED;
  const auto reader = client.ReadLog(request, absl::InfiniteFuture());
  while (true) {
    const auto piece = reader->Next();
    if (!piece.ok()) return piece.status();
    if (!piece->has_value()) break;
    const std::string& data = (*piece)->data();
    if ((*piece)->offset() > expected && !data.empty()) {
      terminal.Note(fmt::format("{} bytes of the log are not kept", (*piece)->offset() - expected));
    }
    expected = (*piece)->offset() + data.size();
    write(is_harmless ? harmless.Next(data) : data);
    if (pieces != nullptr && !data.empty()) pieces->fetch_add(1);
    end = (*piece)->end();
    if (end == v1::LOG_END_UNSPECIFIED) continue;
    if (is_harmless) write(harmless.Finish());
    put(lines.Finish());
    NoteLogEnd(terminal, request, end);
  }
  return end;
}

void NoteEnd(Session& session, const v1::Job& job) {
  session.terminal.Note(Summary(job));
  if (!job.failure().suggestion().empty()) {
    session.terminal.Note("what to do: " + OneLine(job.failure().suggestion()));
  }
  if (const std::string hint = QuotesHint(job); !hint.empty()) session.terminal.Note(hint);
  if (const std::string commands = LogCommands(job); !commands.empty()) {
    session.terminal.Note("its output: " + commands);
  }
}

}  // namespace muster::cli
