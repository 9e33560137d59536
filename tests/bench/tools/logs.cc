#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "agents/core/broker_link.h"
#include "clients/cpp/client.h"
#include "tests/bench/tools/connect.h"
#include "tests/bench/tools/histogram.h"
#include "tests/bench/tools/sim_agent.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr size_t kChunkBytes = 64 << 10;  // the most that the protocol takes
constexpr int kLines = 200;
constexpr absl::Duration kLineInterval = absl::Milliseconds(20);

// One run that exists only in what it writes.
class Writer {
 public:
  Writer(agents::Dialer* dialer, const std::string& journal_id, std::string run_key)
      : run_key_(std::move(run_key)) {
    link_ = dialer->DialPush({
        .on_answer = [](agent::v1::PushResponse) {},
        .on_room =
            [this] {
              std::lock_guard lock(mutex_);
              room_ = true;
              changed_.notify_all();
            },
        .on_end =
            [this](absl::Status status) {
              std::lock_guard lock(mutex_);
              end_ = status.ok() ? absl::CancelledError("the broker ended the stream") : status;
              changed_.notify_all();
            },
    });
    agent::v1::PushRequest hello;
    hello.mutable_hello()->set_protocol_version(1);
    hello.mutable_hello()->set_cluster("bench-0");
    hello.mutable_hello()->set_journal_id(journal_id);
    link_->Send(hello);
  }

  // Waits for room as long as it takes.
  absl::Status Write(std::string_view data, bool end) {
    agent::v1::PushRequest request;
    agent::v1::LogChunk* chunk = request.mutable_chunk();
    chunk->set_run_key(run_key_);
    chunk->set_stream(v1::LOG_STREAM_STDOUT);
    chunk->set_offset(offset_);
    chunk->set_data(data.data(), data.size());
    chunk->set_end(end);
    for (;;) {
      {
        std::lock_guard lock(mutex_);
        if (!end_.ok()) return end_;
        room_ = false;
      }
      if (link_->Send(request)) break;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return room_ || !end_.ok(); });
    }
    offset_ += data.size();
    return absl::OkStatus();
  }

  uint64_t offset() const { return offset_; }

 private:
  const std::string run_key_;
  uint64_t offset_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool room_ = true;
  absl::Status end_;
  std::unique_ptr<agents::PushLink> link_;  // last: its callbacks use the rest
};

// Writes lines that carry the time at which they were written.
absl::Status WriteLines(Writer* writer) {
  for (int i = 0; i < kLines; ++i) {
    const int64_t now = absl::GetCurrentTimeNanos();
    const std::string_view line(reinterpret_cast<const char*>(&now), sizeof(now));
    if (absl::Status status = writer->Write(line, false); !status.ok()) return status;
    absl::SleepFor(kLineInterval);
  }
  return absl::OkStatus();
}

// Reads the lines back; their pieces keep their bounds, because each is followed by a pause.
absl::StatusOr<Histogram> ReadLines(client::LogReader* reader) {
  Histogram delays;
  for (uint64_t read = 0; read < kLines * sizeof(int64_t);) {
    auto piece = reader->Next();
    if (!piece.ok()) return piece.status();
    if (!*piece) return absl::DataLossError("the log ended early");
    const absl::Time now = absl::Now();
    const std::string& data = (*piece)->data();
    for (size_t at = 0; at + sizeof(int64_t) <= data.size(); at += sizeof(int64_t)) {
      int64_t written;
      std::memcpy(&written, data.data() + at, sizeof(written));
      delays.Add(now - absl::FromUnixNanos(written));
    }
    read += data.size();
  }
  return delays;
}

absl::Status ReadUpTo(client::LogReader* reader, uint64_t bytes) {
  for (uint64_t end = 0; end < bytes;) {
    auto piece = reader->Next();
    if (!piece.ok()) return piece.status();
    if (!*piece) return absl::DataLossError("the log ended early");
    end = (*piece)->offset() + (*piece)->data().size();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status IngestLogs(const Load& load) {
  auto dialer = MakeDialer(load);
  if (!dialer.ok()) return dialer.status();
  auto client = MakeClient(load);
  if (!client.ok()) return client.status();

  std::string run_key;
  absl::Notification assigned;
  SimAgent agent(dialer->get(), "bench-0", 1, [&](const agent::v1::Assignments& assignments) {
    run_key = assignments.assignments(0).run_key();
    assigned.Notify();
  });
  if (!agent.Connect(kPatience)) return absl::UnavailableError("the agent could not connect");
  v1::SubmitJobRequest submit;
  *submit.mutable_spec() = SampleSpec(1);
  auto job = (*client)->SubmitJob(submit);
  if (!job.ok()) return job.status();
  if (!assigned.WaitForNotificationWithTimeout(kPatience)) {
    return absl::DeadlineExceededError("no assignment came");
  }
  agent::v1::RunEvents events;
  for (v1::RunState state : {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_RUNNING}) {
    agent::v1::RunEvent* event = events.add_events();
    event->set_run_key(run_key);
    event->set_state(state);
  }
  agent.Send(std::move(events));

  Writer writer(dialer->get(), agent.journal_id(), run_key);
  v1::ReadLogRequest read;
  read.set_job_id(job->job_id());
  read.set_stream(v1::LOG_STREAM_STDOUT);
  read.set_follow(true);
  auto reader = (*client)->ReadLog(read, absl::Now() + 5 * kPatience);
  absl::StatusOr<Histogram> delays = absl::UnknownError("not read");
  std::thread follower([&] { delays = ReadLines(reader.get()); });
  absl::Status status = WriteLines(&writer);
  follower.join();
  if (!status.ok()) return status;
  if (!delays.ok()) return delays.status();

  const std::string chunk(kChunkBytes, 'x');
  const uint64_t total = static_cast<uint64_t>(load.jobs) << 20;  // --jobs is in MiB here
  const absl::Time start = absl::Now();
  absl::Status followed;
  follower = std::thread([&] { followed = ReadUpTo(reader.get(), total); });
  for (absl::Time beat = start; writer.offset() < total;) {
    if (status = writer.Write(chunk, false); !status.ok()) break;
    if (absl::Now() > beat) {
      agent.Beat();
      beat += absl::Seconds(1);
    }
  }
  follower.join();
  if (!status.ok()) return status;
  if (!followed.ok()) return followed;
  fmt::print("{{\"per_s\": {:.1f}, \"added_p50_ms\": {:.3f}}}\n",
             total / absl::ToDoubleSeconds(absl::Now() - start),
             absl::ToDoubleMilliseconds(delays->Percentile(0.5)));
  return absl::OkStatus();
}

}  // namespace muster::bench
