#include "clients/cpp/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "contract/errors.h"
#include "tests/unit/clients/fake_broker.h"

namespace muster::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    options_.address = broker_.address();
    options_.first_backoff = absl::Milliseconds(1);
    options_.max_backoff = absl::Milliseconds(50);
    options_.on_interruption = [this](const absl::Status&, absl::Duration) { ++interruptions_; };
  }

  std::unique_ptr<Client> NewClient() const {
    auto client = Client::Create(options_);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  static v1::SubmitJobRequest Named(const std::string& request_id) {
    v1::SubmitJobRequest request;
    request.set_request_id(request_id);
    return request;
  }

  // A submission that fails as a broken connection does, `failures` times.
  void FailSubmissions(int failures) {
    broker_.submit_job =
        [this,
         failures](const v1::SubmitJobRequest& request) -> absl::StatusOr<v1::SubmitJobResponse> {
      request_ids_.push_back(request.request_id());
      if (++calls_ <= failures) return absl::UnavailableError("Socket closed");
      v1::SubmitJobResponse response;
      response.set_job_id(42);
      return response;
    };
  }

  // These stand before the broker, whose threads use them to its end.
  std::atomic<bool> stop_ = false;
  std::atomic<int> calls_ = 0;
  std::atomic<int> interruptions_ = 0;
  std::vector<std::string> request_ids_;
  FakeBroker broker_;
  ClientOptions options_;
};

TEST_F(ClientTest, RepeatsASubmissionUnderTheSameName) {
  FailSubmissions(2);
  const auto response = NewClient()->SubmitJob(Named("a"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->job_id(), 42u);
  EXPECT_THAT(request_ids_, ElementsAre("a", "a", "a"));
}

TEST_F(ClientTest, OutlastsABrokerThatIsGoneForAWhile) {
  FailSubmissions(20);
  const auto response = NewClient()->SubmitJob(Named("a"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(calls_, 21);
  EXPECT_EQ(interruptions_, 1);
}

TEST_F(ClientTest, ACallThatAStoppingBrokerCutsOffIsMadeAgain) {
  broker_.submit_job = [this](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    if (++calls_ == 1) return absl::CancelledError("CANCELLED");
    return v1::SubmitJobResponse();
  };
  const absl::Status status = NewClient()->SubmitJob(Named("a")).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls_, 2);
}

TEST_F(ClientTest, GivesUpWhenTheTimeOfTheCallIsOver) {
  FailSubmissions(1'000'000);
  options_.call_timeout = absl::Milliseconds(200);
  const absl::Status status = NewClient()->SubmitJob(Named("a")).status();
  // The time may be over while a try waits for its answer.
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
  EXPECT_GT(calls_, 1);
}

TEST_F(ClientTest, AsksAgainAfterTheTimeThatTheBrokerNames) {
  std::vector<absl::Time> asked;
  broker_.submit_job = [&](const auto&) -> absl::StatusOr<v1::SubmitJobResponse> {
    asked.push_back(absl::Now());
    if (asked.size() > 1) return v1::SubmitJobResponse();
    return contract::RetryableError(absl::StatusCode::kResourceExhausted, "BROKER_BUSY", "busy",
                                    absl::Milliseconds(200));
  };
  const auto response = NewClient()->SubmitJob(Named("a"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_GE(asked[1] - asked[0], absl::Milliseconds(200));
}

TEST_F(ClientTest, NeverRepeatsASubmissionWithoutAName) {
  FailSubmissions(100);
  EXPECT_TRUE(absl::IsUnavailable(NewClient()->SubmitJob(Named("")).status()));
  EXPECT_EQ(calls_, 1);
}

TEST_F(ClientTest, NeverRepeatsABatchOfWhichOneHasNoName) {
  broker_.submit_jobs = [this](const auto&) -> absl::StatusOr<v1::SubmitJobsResponse> {
    ++calls_;
    return absl::UnavailableError("Socket closed");
  };
  v1::SubmitJobsRequest request;
  *request.add_requests() = Named("a");
  *request.add_requests() = Named("");
  EXPECT_FALSE(NewClient()->SubmitJobs(request).ok());
  EXPECT_EQ(calls_, 1);
}

TEST_F(ClientTest, DoesNotWaitLongerThanTheCallMayTake) {
  broker_.get_job = [this](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    ++calls_;
    return contract::RetryableError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN", "going down",
                                    absl::Minutes(7));
  };
  const absl::Status status = NewClient()->GetJob({}).status();
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(std::string(status.message()), "going down");
  EXPECT_EQ(contract::GetRetryDelay(status), absl::Minutes(7));
}

TEST_F(ClientTest, NamesTheAddressAndTheRemedyIfThereIsNoBroker) {
  broker_.Stop();
  options_.absent_patience = absl::Milliseconds(50);
  const absl::Status status = NewClient()->GetJob({}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot reach the broker at " + broker_.address()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("start the broker"));
}

TEST_F(ClientTest, ASocketOnWhichNobodyListensIsGivenUpSoon) {
  broker_.Stop();
  options_.call_timeout = absl::Hours(1);
  options_.stream_patience = absl::Hours(1);
  options_.absent_patience = absl::Milliseconds(50);
  const auto client = NewClient();
  EXPECT_TRUE(absl::IsUnavailable(client->GetJob({}).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->WatchJobs({}, absl::InfiniteFuture())->Next().status()));
  // A socket that a killed broker has left behind.
  const std::string path = broker_.address().substr(5);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  EXPECT_TRUE(absl::IsUnavailable(NewClient()->GetJob({}).status()));
  close(fd);
}

TEST_F(ClientTest, WhatNobodyWasThereForWasNeverSentAndWhatSomebodyTookMayHaveBeen) {
  FailSubmissions(1'000'000);
  options_.call_timeout = absl::Milliseconds(200);
  options_.absent_patience = absl::Milliseconds(50);
  EXPECT_FALSE(WasNeverSent(NewClient()->SubmitJob(Named("a")).status()));
  std::atomic<bool> is_stopped = false;
  options_.on_interruption = [&](const absl::Status&, absl::Duration) {
    if (!is_stopped.exchange(true)) broker_.Stop();
  };
  EXPECT_FALSE(WasNeverSent(NewClient()->SubmitJob(Named("b")).status()));
  ASSERT_TRUE(is_stopped);
  EXPECT_TRUE(WasNeverSent(NewClient()->SubmitJob(Named("c")).status()));
}

TEST_F(ClientTest, ADirectoryInTheSocketsPlaceIsAnErrorAtOnce) {
  options_.absent_patience = absl::Hours(1);
  options_.call_timeout = absl::Hours(1);
  options_.address = "unix:/tmp";
  const absl::Status status = NewClient()->GetJob({}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("That is a directory"));
}

TEST_F(ClientTest, ABrokerThatHasAnsweredIsWaitedForThoughItsSocketIsGone) {
  FailSubmissions(0);
  options_.absent_patience = absl::ZeroDuration();
  const auto client = NewClient();
  ASSERT_TRUE(client->SubmitJob(Named("a")).ok());
  broker_.Stop();
  std::thread restart([&] {
    while (interruptions_ == 0 && !stop_) std::this_thread::yield();
    broker_.Start();
  });
  EXPECT_TRUE(client->SubmitJob(Named("b")).ok());
  stop_ = true;
  restart.join();
}

TEST_F(ClientTest, ASocketThatTheUserMayNotUseIsNamedWithItsOwnerAndMode) {
  const std::filesystem::path path = broker_.address().substr(5);
  // Root may do everything; glibc tells the other threads too.
  constexpr uid_t kNobody = 65534;
  const uid_t user = geteuid();
  const auto refusal = [&] {
    EXPECT_EQ(seteuid(user == 0 ? kNobody : user), 0);
    const absl::Status status = NewClient()->GetJob({}).status();
    EXPECT_EQ(seteuid(user), 0);
    return status;
  };
  std::filesystem::permissions(path.parent_path(), std::filesystem::perms(0755));
  std::filesystem::permissions(path, std::filesystem::perms(0));
  const absl::Status by_socket = refusal();
  std::filesystem::permissions(path.parent_path(), std::filesystem::perms(0600));
  const absl::Status by_directory = refusal();
  std::filesystem::permissions(path.parent_path(), std::filesystem::perms(0700));

  EXPECT_TRUE(absl::IsPermissionDenied(by_socket)) << by_socket;
  EXPECT_THAT(std::string(by_socket.message()),
              HasSubstr("permission denied on " + path.string() + " (owner "));
  EXPECT_THAT(std::string(by_socket.message()), HasSubstr("mode 0000)"));
  EXPECT_THAT(std::string(by_socket.message()), HasSubstr("--broker"));
  EXPECT_TRUE(absl::IsPermissionDenied(by_directory)) << by_directory;
  EXPECT_THAT(std::string(by_directory.message()),
              HasSubstr("permission denied on " + path.parent_path().string() + " (owner "));
  EXPECT_EQ(interruptions_, 0);
}

TEST_F(ClientTest, EveryCallHasADeadline) {
  broker_.get_job = [this](const auto&) -> absl::StatusOr<v1::GetJobResponse> {
    while (!stop_) std::this_thread::yield();
    return v1::GetJobResponse();
  };
  options_.call_timeout = absl::Milliseconds(50);
  const absl::Status status = NewClient()->GetJob({}).status();
  stop_ = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not answer within 50ms"));
}

TEST_F(ClientTest, RefusesARequestThatNoBrokerTakes) {
  v1::SubmitJobRequest request = Named("a");
  request.mutable_spec()->set_setup(std::string(kMaxRequestBytes, 'x'));
  const absl::Status status = NewClient()->SubmitJob(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("submit fewer jobs at a time"));
}

TEST_F(ClientTest, RequestIdsAreUuidsAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = NewRequestId();
    EXPECT_THAT(
        id, MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    EXPECT_TRUE(seen.insert(id).second);
  }
}

std::vector<uint64_t> Sequences(WatchReader* reader, absl::Status* end) {
  std::vector<uint64_t> seen;
  while (true) {
    const auto step = reader->Next();
    if (step.ok() && step->has_value()) {
      seen.push_back((*step)->transition().sequence());
      continue;
    }
    *end = step.status();
    return seen;
  }
}

TEST_F(ClientTest, AWatchGoesOnWhereItBrokeOff) {
  std::vector<int64_t> asked;
  broker_.watch_jobs = [&](const v1::WatchJobsRequest& request, const auto& write) -> absl::Status {
    asked.push_back(request.has_after() ? static_cast<int64_t>(request.after()) : -1);
    write(Heartbeat());
    if (asked.size() == 1) {
      v1::WatchJobsResponse two = Step(1, 3, v1::JOB_STATE_QUEUED);
      two.MergeFrom(Step(1, 5, v1::JOB_STATE_PENDING));
      write(two);
      return absl::UnavailableError("Socket closed");
    }
    v1::WatchJobsResponse rest = Step(1, 5, v1::JOB_STATE_PENDING);  // once too often
    rest.MergeFrom(Step(1, 9, v1::JOB_STATE_SUCCEEDED));
    write(rest);
    return absl::OkStatus();
  };
  absl::Status end;
  const auto client = NewClient();
  const auto reader = client->WatchJobs({}, absl::InfiniteFuture());
  EXPECT_THAT(Sequences(reader.get(), &end), ElementsAre(3, 5, 9));
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_THAT(asked, ElementsAre(-1, 5));
  EXPECT_EQ(interruptions_, 1);
}

TEST_F(ClientTest, AWatchFromNowOnResumesWhereItBeganThoughItHasSeenNoStep) {
  std::vector<int64_t> asked;
  broker_.watch_jobs = [&](const v1::WatchJobsRequest& request, const auto& write) -> absl::Status {
    asked.push_back(request.has_after() ? static_cast<int64_t>(request.after()) : -1);
    write(Heartbeat(asked.size() == 1 ? 0 : 7));  // nothing has ever happened: 0
    return asked.size() < 3 ? absl::UnavailableError("Socket closed") : absl::OkStatus();
  };
  const auto client = NewClient();
  v1::WatchJobsRequest request;
  request.mutable_now();
  int heartbeats = 0;
  const auto reader = client->WatchJobs(request, absl::InfiniteFuture(), [&] { ++heartbeats; });
  EXPECT_FALSE((*reader->Next()).has_value());
  EXPECT_THAT(asked, ElementsAre(-1, 0, 7));
  EXPECT_EQ(heartbeats, 3);
}

TEST_F(ClientTest, AWatchSurvivesARestartOfTheBroker) {
  std::atomic<int> streams = 0;
  broker_.watch_jobs = [&](const v1::WatchJobsRequest& request, const auto& write) -> absl::Status {
    if (++streams == 1) {
      write(Step(1, 3, v1::JOB_STATE_QUEUED));
      while (write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return absl::CancelledError("");
    }
    EXPECT_EQ(request.after(), 3u);
    write(Step(1, 4, v1::JOB_STATE_SUCCEEDED));
    return absl::OkStatus();
  };
  const auto client = NewClient();
  const auto reader = client->WatchJobs({}, absl::InfiniteFuture());
  ASSERT_EQ((*reader->Next())->transition().sequence(), 3u);
  std::thread restart([&] {
    broker_.Stop();
    while (interruptions_ == 0) std::this_thread::yield();
    broker_.Start();
  });
  absl::Status end;
  EXPECT_THAT(Sequences(reader.get(), &end), ElementsAre(4));
  EXPECT_TRUE(end.ok()) << end;
  restart.join();
}

TEST_F(ClientTest, AWatchEndsAtItsDeadline) {
  broker_.watch_jobs = [](const auto&, const auto& write) -> absl::Status {
    while (write(Heartbeat())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  const auto client = NewClient();
  const auto reader = client->WatchJobs({}, absl::Now() + absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(reader->Next().status()));
}

TEST_F(ClientTest, AStreamGivesUpWhenItsPatienceIsOver) {
  options_.stream_patience = absl::Milliseconds(200);
  broker_.Stop();
  const auto client = NewClient();
  const absl::Status status = client->WatchJobs({}, absl::InfiniteFuture())->Next().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(broker_.address()));
  EXPECT_EQ(interruptions_, 1);
}

TEST_F(ClientTest, AStreamEndsAtAnErrorThatStays) {
  broker_.watch_jobs = [&](const auto&, const auto&) -> absl::Status {
    ++calls_;
    return absl::NotFoundError("no job 7");
  };
  const auto client = NewClient();
  EXPECT_TRUE(absl::IsNotFound(client->WatchJobs({}, absl::InfiniteFuture())->Next().status()));
  EXPECT_EQ(calls_, 1);
}

TEST_F(ClientTest, AReaderMayBeLeftInTheMiddle) {
  broker_.watch_jobs = [](const auto&, const auto& write) -> absl::Status {
    while (write(Step(1, 1, v1::JOB_STATE_QUEUED))) {
    }
    return absl::OkStatus();
  };
  const auto client = NewClient();
  const auto reader = client->WatchJobs({}, absl::InfiniteFuture());
  EXPECT_TRUE(reader->Next().ok());
}

using Positions = std::map<v1::LogStream, uint64_t>;

Positions PositionsOf(const v1::ReadLogRequest& request) {
  Positions positions;
  for (const v1::LogPosition& position : request.positions()) {
    positions[position.stream()] = position.offset();
  }
  return positions;
}

TEST_F(ClientTest, ALogGoesOnAtItsPositionsAndDropsWhatWasSeen) {
  std::vector<Positions> asked;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    asked.push_back(PositionsOf(request));
    switch (asked.size()) {
      case 1:
        write(Piece(0, "hello "));
        write(Piece(0, "oops", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
        return absl::UnavailableError("Socket closed");
      case 2:
        write(Piece(4, "o wor"));  // begins before what was asked for
        return absl::AbortedError("too slow");
      default:
        write(Piece(9, "ld"));
        write(Piece(4, "", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));  // once more
        write(Piece(11, "", v1::LOG_END_COMPLETE));
        return absl::OkStatus();
    }
  };
  const auto client = NewClient();
  const auto reader = client->ReadLog({}, absl::InfiniteFuture());
  std::map<v1::LogStream, std::string> logs;
  std::map<v1::LogStream, int> ends;
  while (true) {
    const auto piece = reader->Next();
    ASSERT_TRUE(piece.ok()) << piece.status();
    if (!piece->has_value()) break;
    std::string& log = logs[(*piece)->stream()];
    EXPECT_EQ((*piece)->offset(), log.size());
    log += (*piece)->data();
    ends[(*piece)->stream()] += (*piece)->end() == v1::LOG_END_COMPLETE ? 1 : 0;
  }
  EXPECT_EQ(logs[v1::LOG_STREAM_STDOUT], "hello world");
  EXPECT_EQ(logs[v1::LOG_STREAM_STDERR], "oops");
  EXPECT_EQ(ends[v1::LOG_STREAM_STDOUT], 1);
  EXPECT_EQ(ends[v1::LOG_STREAM_STDERR], 1);
  EXPECT_THAT(
      asked,
      ElementsAre(Positions{}, Positions{{v1::LOG_STREAM_STDOUT, 6}, {v1::LOG_STREAM_STDERR, 4}},
                  Positions{{v1::LOG_STREAM_STDOUT, 9}, {v1::LOG_STREAM_STDERR, 4}}));
}

TEST_F(ClientTest, TheLastLinesAreAskedForUntilBothOutputsHaveSaidWhereTheyBegin) {
  std::vector<uint32_t> asked;
  Positions resumed;
  broker_.read_log = [&](const v1::ReadLogRequest& request, const auto& write) -> absl::Status {
    asked.push_back(request.tail_lines());
    if (asked.size() < 3) {
      write(Piece(100, ""));
      if (asked.size() == 2) {
        write(Piece(50, "", v1::LOG_END_UNSPECIFIED, v1::LOG_STREAM_STDERR));
        write(Piece(100, "last\n"));
      }
      return absl::UnavailableError("Socket closed");
    }
    resumed = PositionsOf(request);
    write(Piece(105, "", v1::LOG_END_COMPLETE));
    write(Piece(50, "", v1::LOG_END_COMPLETE, v1::LOG_STREAM_STDERR));
    return absl::OkStatus();
  };
  const auto client = NewClient();
  v1::ReadLogRequest request;
  request.set_tail_lines(1);
  const auto reader = client->ReadLog(request, absl::InfiniteFuture());
  std::string log;
  while (true) {
    const auto piece = reader->Next();
    ASSERT_TRUE(piece.ok()) << piece.status();
    if (!piece->has_value()) break;
    log += (*piece)->data();
  }
  EXPECT_EQ(log, "last\n");
  EXPECT_THAT(asked, ElementsAre(1, 1, 0));
  EXPECT_EQ(resumed, (Positions{{v1::LOG_STREAM_STDOUT, 105}, {v1::LOG_STREAM_STDERR, 50}}));
}

TEST(ClientToken, IsNotSentThroughANetworkInTheClear) {
  for (const char* address : {"10.0.0.1:7070", "lab.example:7070", "[fe80::1]:7070"}) {
    ClientOptions options;
    options.address = address;
    EXPECT_TRUE(Client::Create(options).ok()) << address;
    options.token = "mst_x";
    EXPECT_TRUE(absl::IsInvalidArgument(Client::Create(options).status())) << address;
  }
  for (const char* address : {"unix:/x", "127.0.0.1:7070", "[::1]:7070", "localhost:7070"}) {
    ClientOptions options;
    options.address = address;
    options.token = "mst_x";
    EXPECT_TRUE(Client::Create(options).ok()) << address;
  }
}

}  // namespace
}  // namespace muster::client
