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
#include "clients/cli/report.h"
#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

// One WatchJobs takes as many.
constexpr size_t kMaxWatched = 1000;
// The rest of a log arrives soon after its job's end, or the broker says that it does not; this is
// for a broker that says neither.
constexpr auto kLogGrace = std::chrono::seconds(60);

// Has one thread for each rank of a run, which passes its log on to the end.
class LogFollowers {
 public:
  LogFollowers(Session* session, const LogChoice& choice) : session_(*session), choice_(choice) {}

  uint32_t first_run() const { return choice_.first_run; }

  void Start(uint64_t job, uint32_t run) {
    // A run that begins while we look is wanted from its beginning.
    const bool has_begun = run == choice_.first_run;
    for (LogPart& part : LogParts(job, run, session_.call.raw, choice_)) {
      if (!has_begun) part.request.clear_tail_lines();
      part.request.set_follow(true);
      std::promise<void> promise;
      done_.push_back(promise.get_future());
      // Detached: if a log never ends, the process must not wait for it. It uses what lives as long
      // as the process.
      std::thread([&client = session_.client, &terminal = session_.terminal, part = std::move(part),
                   pieces = pieces_, promise = std::move(promise)]() mutable {
        const absl::Status status =
            CopyLog(client, terminal, part.request, part.target, pieces.get()).status();
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

// The place that has the job and says nothing of it.
enum class Silence { kNone, kHost, kCluster };

// Says once how a job stands and, while it waits, why; not each step of it. Says when its cluster
// or a host of it has gone silent, and when there is word from it again.
class Progress {
 public:
  enum class Told { kAll, kTroubleAlone };  // that a job waits, or is silent, is trouble

  Progress(client::Client* client, Terminal* terminal, Told told = Told::kAll)
      : client_(*client), terminal_(*terminal), told_(told) {}

  // The job as it is now: what had happened before anyone waited is not news.
  void Saw(const v1::Job& seen_job) {
    if (contract::IsTerminal(seen_job.state())) {
      last_.erase(seen_job.id());
      return;
    }
    if (HasLostItsRun(seen_job)) return;
    if (IsUnexplained(seen_job)) {
      Look(seen_job.id());
    } else if (MayBeSilent(seen_job)) {
      const auto job = Ask(seen_job.id());
      if (job.ok()) Tell(contract::IsTerminal(job->state()) ? seen_job : *job);
    } else {
      Tell(seen_job);
    }
  }

  // Reasons change without a step, and agents go silent, so that jobs are asked about now and then.
  void LookAgain() {
    std::vector<uint64_t> waiting;
    for (const auto& [id, seen] : last_) {
      if (waiting.size() < kMaxLookedAt) waiting.push_back(id);
    }
    for (uint64_t id : waiting) {
      if (!Look(id)) return;
    }
  }

 private:
  // Tells whether the job's run has just ended and another one follows. The next step tells the
  // reason of the wait; if none does, the broker is asked about the job as about every job that
  // waits.
  bool HasLostItsRun(const v1::Job& job) const {
    const auto last = last_.find(job.id());
    return job.state() == v1::JOB_STATE_QUEUED && !job.has_state_reason() && last != last_.end() &&
           last->second.state != v1::JOB_STATE_QUEUED;
  }

  // A step does not say why a queued job waits. One that was submitted just now does so for a
  // moment only, which is not worth a question.
  bool IsUnexplained(const v1::Job& job) const {
    constexpr absl::Duration kMoment = absl::Seconds(1);
    return job.state() == v1::JOB_STATE_QUEUED && !job.has_state_reason() &&
           last_.size() < kMaxLookedAt && absl::Now() - ToTime(job.create_time()) > kMoment;
  }

  // A step does not say that there is no word of a job that a cluster has. The question is asked
  // when the job is seen for the first time, and while there was none.
  bool MayBeSilent(const v1::Job& job) const {
    if (job.state() == v1::JOB_STATE_QUEUED) return false;
    const auto last = last_.find(job.id());
    if (last == last_.end()) return last_.size() < kMaxLookedAt;
    return last->second.silence == Silence::kCluster;
  }

  absl::StatusOr<v1::Job> Ask(uint64_t id) {
    v1::GetJobRequest request;
    request.set_job_id(id);
    auto response = client_.GetJob(request);
    if (!response.ok()) return response.status();
    return std::move(*response->mutable_job());
  }

  // False: the job could not be asked about, and the stream will tell what is wrong.
  bool Look(uint64_t id) {
    const auto job = Ask(id);
    if (!job.ok()) return false;
    if (contract::IsTerminal(job->state())) {
      last_.erase(id);
    } else {
      Tell(*job);
    }
    return true;
  }

  static Silence SilenceOf(const v1::Job& job) {
    if (SaysNoWord(job)) return Silence::kCluster;
    const bool is_host_silent =
        !Waits(job.state()) && job.state_reason().code() == v1::STATE_REASON_CODE_HOST_SILENT;
    return is_host_silent ? Silence::kHost : Silence::kNone;
  }

  void Tell(const v1::Job& job) {
    const Silence silence = SilenceOf(job);
    const bool is_silent = silence != Silence::kNone;
    const std::string reason =
        Waits(job.state()) || is_silent ? OneLine(job.state_reason().message()) : "";
    // The words about one that does not answer may differ with each try.
    const Seen seen{job.state(), is_silent ? "" : reason, silence};
    Seen& last = last_[job.id()];
    const Silence before = last.silence;
    const bool is_back = before != Silence::kNone && !is_silent;
    // A reason that goes before its state does is not worth a line.
    if (seen == last || (seen.state == last.state && reason.empty() && !is_back)) return;
    last = seen;
    if (is_back) {
      terminal_.Note(before == Silence::kCluster
                         ? fmt::format("cluster {} answers again", Harmless(job.cluster()))
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
  // The jobs that are looked at if there are many: the first ones, which are the next to start.
  static constexpr size_t kMaxLookedAt = 20;

  client::Client& client_;
  Terminal& terminal_;
  const Told told_;
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
  request.mutable_beginning();
  request.set_until_terminal(true);
  Progress progress(&session.client, &session.terminal);
  const auto reader =
      session.client.WatchJobs(request, deadline, [&progress] { progress.LookAgain(); });
  uint32_t followed_run = logs == nullptr ? 0 : logs->first_run() - 1;
  while (true) {
    const auto change = reader->Next();
    if (!change.ok()) return change.status();
    if (!change->has_value()) return absl::OkStatus();
    progress.Saw((*change)->job());
    const uint32_t run = (*change)->transition().run();
    if (logs == nullptr || run <= followed_run) continue;
    followed_run = run;
    logs->Start((*change)->job().id(), run);
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
    LogPart& part = parts.emplace_back();
    part.request.set_job_id(job);
    part.request.set_run(run);
    part.request.set_rank(rank);
    part.request.set_tail_lines(choice.tail_lines);
    part.target.raw = raw;
    part.target.is_merged = choice.is_merged;
    if (choice.is_labelled) {
      part.target.label = fmt::format("({}, rank={}) ", Harmless(choice.name), rank);
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
    request.mutable_beginning();
    request.set_until_terminal(true);
    Progress progress(&client, &terminal, Progress::Told::kTroubleAlone);
    const auto reader =
        client.WatchJobs(request, absl::InfiniteFuture(), [&progress] { progress.LookAgain(); });
    while (true) {
      const auto change = reader->Next();
      // The reader of the log tells the user if the broker is gone.
      if (!change.ok() || !change->has_value()) return;
      progress.Saw((*change)->job());
    }
  }).detach();
}

void NoteEnd(Session& session, const v1::Job& job) {
  session.terminal.Note(Summary(job));
  if (!job.failure().remedy().empty()) {
    session.terminal.Note("what to do: " + OneLine(job.failure().remedy()));
  }
  if (const std::string hint = QuotesHint(job); !hint.empty()) session.terminal.Note(hint);
  if (const std::string commands = LogCommands(job); !commands.empty()) {
    session.terminal.Note("its output: " + commands);
  }
}

}  // namespace muster::cli
