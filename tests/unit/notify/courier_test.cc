#include "broker/notify/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "broker/core/sequences.h"
#include "daemon/log.h"
#include "spdlog/sinks/ostream_sink.h"
#include "sync/mutex.h"
#include "tests/unit/notify/changes.h"

namespace muster::notify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

broker::ChangeBytes BytesOf(const v1::WatchJobsResponse& message) {
  return std::make_shared<const std::string>(message.SerializeAsString());
}

// Counts, and lets another thread wait for a count.
class Counter {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void Await(int count) {
    MutexLock lock(mutex_);
    while (count_ < count) lock.Wait(changed_);
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The feed of a broker whose changes are there from the beginning. It looks through the numbers up
// to `end`.
class FakeFeed final : public broker::WatchSource {
 public:
  FakeFeed(const std::vector<v1::JobChange>& changes, uint64_t after, uint64_t end,
           Counter* heartbeats)
      : position_(after), end_(end), heartbeats_(heartbeats) {
    for (const v1::JobChange& change : changes) {
      if (change.sequence() > after) left_.push_back(change);
    }
  }
  Pulled Next() override {
    Pulled pulled;
    if (left_.empty()) return pulled;
    v1::WatchJobsResponse message;
    *message.add_changes() = left_.front();
    position_ = left_.front().sequence();
    left_.pop_front();
    pulled.messages.push_back(BytesOf(message));
    pulled.more = true;
    return pulled;
  }
  std::optional<broker::ChangeBytes> KeepAlive() override {
    v1::WatchJobsResponse message;
    message.mutable_heartbeat()->set_sequence(std::max(position_, end_));
    heartbeats_->Add();
    return BytesOf(message);
  }

 private:
  std::deque<v1::JobChange> left_;
  uint64_t position_;
  const uint64_t end_;
  Counter* const heartbeats_;
};

// A receiver that answers by a script, and with 200 when that is at its end.
class FakeReceiver {
 public:
  explicit FakeReceiver(std::vector<int> answers = {}) : answers_(answers.begin(), answers.end()) {}

  oidc::Exchanger exchanger() {
    return [this](const oidc::HttpsRequest& request) -> absl::StatusOr<oidc::HttpsAnswer> {
      const MutexLock lock(mutex_);
      int status = 200;
      if (!answers_.empty()) {
        status = answers_.front();
        answers_.pop_front();
      }
      requests_.push_back(request);
      changed_.notify_all();
      if (status == 0) return absl::UnavailableError(request.url + ": connection refused");
      return oidc::HttpsAnswer{.status = status, .body = "", .max_age = {}, .retry_after = {}};
    };
  }
  // Waits for so many requests.
  std::vector<oidc::HttpsRequest> Await(size_t count) {
    MutexLock lock(mutex_);
    while (requests_.size() < count) lock.Wait(changed_);
    return requests_;
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<oidc::HttpsRequest> requests_ ABSL_GUARDED_BY(mutex_);
};

std::string HeaderOf(const oidc::HttpsRequest& request, std::string_view name) {
  for (const std::string& line : request.headers) {
    if (line.starts_with(name)) return line.substr(name.size() + 2);
  }
  return "";
}

std::vector<std::string> EventsOf(const std::vector<oidc::HttpsRequest>& requests) {
  std::vector<std::string> events;
  for (const auto& request : requests) events.push_back(HeaderOf(request, "Muster-Event-Id"));
  return events;
}

class CourierTest : public testing::Test {
 protected:
  std::string CursorFile() const {
    return testing::TempDir() + "/" +
           testing::UnitTest::GetInstance()->current_test_info()->name() + ".cursor";
  }
  void SetUp() override { std::remove(CursorFile().c_str()); }

  absl::StatusOr<std::unique_ptr<Courier>> Make(FakeReceiver* receiver, uint64_t last_stored) {
    CourierOptions options;
    options.webhook.name = "ops";
    options.webhook.url = "https://ops.example.org/TOKEN";
    options.webhook.secret = "secret";
    options.broker = "k7m2";
    options.cursor_file = CursorFile();
    options.job_retention = absl::Hours(24 * 90);
    options.open_feed =
        [this](uint64_t after) -> absl::StatusOr<std::unique_ptr<broker::WatchSource>> {
      return std::make_unique<FakeFeed>(changes_, after, feed_end_, &heartbeats_);
    };
    options.last_change = [this] { return std::max(changes_.back().sequence(), feed_end_); };
    options.last_stored = [last_stored] { return last_stored; };
    options.read_past = [this](uint64_t, uint64_t) { return past_; };
    options.exchange = receiver->exchanger();
    options.now = [this] { return now_; };
    return Courier::Make(std::move(options));
  }
  uint64_t After() const {
    const auto cursor = ReadCursor(CursorFile());
    return cursor.ok() && *cursor ? (*cursor)->after : 0;
  }

  Counter heartbeats_;
  std::optional<v1::Job> past_;  // the job of a change that is further than its step
  uint64_t feed_end_ = 0;        // how far the feed has been looked through, if beyond the changes
  // A minute after the changes.
  absl::Time now_ = absl::FromUnixSeconds(1'767'323'105);
  std::vector<v1::JobChange> changes_ = {EndOf(1, 10, v1::JOB_STATE_SUCCEEDED),
                                         EndOf(2, 11, v1::JOB_STATE_RUNNING),
                                         EndOf(3, 15, v1::JOB_STATE_FAILED)};
};

TEST_F(CourierTest, PostsWantedEventsInOrderAndNotesTheirNumbers) {
  FakeReceiver receiver;
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 9}).ok());
  auto courier = Make(&receiver, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  const auto requests = receiver.Await(2);
  (*courier)->Stop();
  EXPECT_THAT(EventsOf(requests), ElementsAre("10", "15"));
  EXPECT_THAT(HeaderOf(requests[0], "Muster-Signature"), HasSubstr(",v1="));
  EXPECT_EQ(requests[0].url, "https://ops.example.org/TOKEN");
  EXPECT_EQ((*courier)->counts().failed_tries, 0U);
}

TEST_F(CourierTest, BeginsBehindTheLastChangeAndWritesThat) {
  FakeReceiver receiver;
  ASSERT_TRUE(Make(&receiver, 11).ok());
  EXPECT_EQ(After(), 11U);
  // The next broker finds the file, whatever the store has by then.
  auto courier = Make(&receiver, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  EXPECT_THAT(EventsOf(receiver.Await(1)), ElementsAre("15"));
}

TEST_F(CourierTest, GoesOnWithTheSameEventUntilTheReceiverHasIt) {
  FakeReceiver receiver({503, 0});
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 9}).ok());
  auto courier = Make(&receiver, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  const auto requests = receiver.Await(4);
  EXPECT_THAT(EventsOf(requests), ElementsAre("10", "10", "10", "15"));
  EXPECT_EQ(requests[0].body, requests[2].body);
  (*courier)->Stop();
  EXPECT_EQ((*courier)->counts().failed_tries, 2U);
  EXPECT_EQ((*courier)->counts().given_up, 0U);
}

TEST_F(CourierTest, KeepsTheEventThatIsNotConfirmedForTheNextBroker) {
  FakeReceiver away({200, 503, 503, 503, 503});
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 9}).ok());
  auto courier = Make(&away, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  away.Await(2);
  (*courier)->Stop();
  EXPECT_EQ(After(), 10U);
  FakeReceiver back;
  courier = Make(&back, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  EXPECT_THAT(EventsOf(back.Await(1)), ElementsAre("15"));
}

TEST_F(CourierTest, TellsOfAJobThatIsFurtherAsItWasAtTheStep) {
  v1::JobChange& ended = changes_.front();
  ended.mutable_transition()->set_job_sequence(7);
  ended.mutable_job()->set_job_sequence(8);
  (*ended.mutable_job()->mutable_labels())["team"] = "speech";
  past_ = ended.job();
  (*past_->mutable_labels())["team"] = "vision";
  FakeReceiver receiver;
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 9}).ok());
  auto courier = Make(&receiver, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  const auto requests = receiver.Await(1);
  (*courier)->Stop();
  EXPECT_THAT(*requests[0].body, HasSubstr("vision"));
}

TEST_F(CourierTest, BeginsWithWhatComesNextIfTheDatabaseIsOlderThanItsFile) {
  FakeReceiver receiver;
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 1000}).ok());
  ASSERT_TRUE(Make(&receiver, 15).ok());
  EXPECT_EQ(After(), 15U);
}

// The log of the process, while the object lives.
class Log {
 public:
  Log() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    logger->set_formatter(std::make_unique<EventFormatter>(/*json=*/false));
    spdlog::set_default_logger(std::move(logger));
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream text_;
};

TEST_F(CourierTest, SaysHowManyChangesWereDeletedBeforeItCameToThem) {
  FakeReceiver receiver;
  const absl::Time then = now_ - absl::Hours(24 * 100);
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 3, .time = then}).ok());
  const Log log;
  auto courier = Make(&receiver, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  receiver.Await(2);
  (*courier)->Stop();
  EXPECT_THAT(log.text(), HasSubstr("webhook_skips_deleted webhook=ops after=3 next=10 "
                                    "changes_at_most=6"));
}

TEST_F(CourierTest, SaysThatChangesWereDeletedBehindWhichNoneFollows) {
  FakeReceiver receiver;
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 15, .time = now_ - absl::Hours(24 * 100)}).ok());
  feed_end_ = 20;
  const Log log;
  auto courier = Make(&receiver, 20);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  heartbeats_.Await(1);
  (*courier)->Stop();
  EXPECT_THAT(log.text(), HasSubstr("webhook_skips_deleted webhook=ops after=15 next=21 "
                                    "changes_at_most=5"));
  EXPECT_EQ(After(), 20U);
}

// Each process leaves numbers out, of which the store knows nothing before the first change.
TEST_F(CourierTest, StaysWithTheStoreWhileABrokerWithoutChangesStartsAgainAndAgain) {
  const absl::Time then = now_ - absl::Hours(24 * 100);
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 15, .time = then}).ok());
  const Log log;
  for (int start = 1; start <= 3; ++start) {
    FakeReceiver receiver;
    feed_end_ = 15 + core::kSequencesForgotten;
    auto courier = Make(&receiver, 15);
    ASSERT_TRUE(courier.ok()) << courier.status();
    EXPECT_EQ((*courier)->counts().backlog, 0U);
    (*courier)->Start();
    heartbeats_.Await(start);
    (*courier)->Stop();
    EXPECT_EQ((*courier)->counts().backlog, 0U);
    EXPECT_EQ(After(), 15U);
  }
  // Nor is what comes next behind a gap.
  changes_.push_back(EndOf(4, 16 + core::kSequencesForgotten, v1::JOB_STATE_FAILED));
  FakeReceiver receiver;
  auto courier = Make(&receiver, changes_.back().sequence());
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  EXPECT_THAT(EventsOf(receiver.Await(1)), ElementsAre("1000000016"));
  (*courier)->Stop();
  EXPECT_EQ(log.text(), "");
  const auto cursor = ReadCursor(CursorFile());
  ASSERT_TRUE(cursor.ok() && *cursor);
  EXPECT_TRUE((*cursor)->time);
}

TEST_F(CourierTest, CountsChangesAndNotTheNumbersThatRestartsLeaveOut) {
  FakeReceiver receiver;
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 13}).ok());
  changes_.push_back(EndOf(4, 16 + core::kSequencesForgotten, v1::JOB_STATE_FAILED));
  feed_end_ = 16 + 2 * core::kSequencesForgotten;
  auto courier = Make(&receiver, changes_.back().sequence());
  ASSERT_TRUE(courier.ok()) << courier.status();
  EXPECT_EQ((*courier)->counts().backlog, 3U);
}

TEST_F(CourierTest, SaysNothingOfNumbersThatNoChangeHas) {
  FakeReceiver receiver;
  ASSERT_TRUE(WriteCursor(CursorFile(), {.after = 3, .time = now_ - absl::Hours(24 * 80)}).ok());
  const Log log;
  auto courier = Make(&receiver, 15);
  ASSERT_TRUE(courier.ok()) << courier.status();
  (*courier)->Start();
  receiver.Await(2);
  (*courier)->Stop();
  EXPECT_EQ(log.text(), "");
}

TEST_F(CourierTest, RefusesAFileThatIsNoCursor) {
  FakeReceiver receiver;
  std::ofstream(CursorFile()) << "later\n";
  EXPECT_THAT(std::string(Make(&receiver, 15).status().message()), HasSubstr(CursorFile()));
}

}  // namespace
}  // namespace muster::notify
