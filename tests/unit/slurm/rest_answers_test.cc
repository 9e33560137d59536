// Tests slurmrestd's answers: as Slurm 22.05 gives them (recorded, shortened), and in the shapes of
// later versions of its API.
#include <nlohmann/json.hpp>

#include "agents/slurm/rest_client.h"
#include "agents/slurm/rest_json.h"
#include "agents/slurm/rest_rows.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Parse(std::string_view text) {
  const std::optional<json> parsed = ParseRestJson(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(json::object());
}

constexpr char kJobs38[] = R"j({"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [], "jobs": [
  {"account": "test", "job_id": 118, "job_state": "COMPLETED", "name": "k7m2-42-1", "nodes": "n1",
   "user_name": "ada", "state_reason": "None", "submit_time": 1795250253, "exit_code": 768,
   "start_time": 1795250254, "end_time": 1795250260, "job_resources": {"nodes": "n1"}},
  {"job_id": 119, "job_state": "PENDING", "name": "k7m2-43-1", "nodes": "", "user_name": "ada",
   "state_reason": "Dependency", "submit_time": 1795250255, "start_time": 0, "end_time": 0,
   "restart_cnt": 2},
  {"job_id": 120, "job_state": "RUNNING", "name": "k7m2-43-1", "nodes": "n2", "user_name": "bob",
   "state_reason": "None"}]})j";

constexpr char kJobs40[] = R"j({"jobs": [
  {"job_id": 118, "job_state": ["RUNNING", "COMPLETING"], "name": "k7m2-42-1", "nodes": "n1",
   "user_name": "ada", "state_reason": "None",
   "submit_time": {"set": true, "infinite": false, "number": 1795250253},
   "start_time": {"set": true, "infinite": false, "number": 1795250254},
   "end_time": {"set": false, "infinite": false, "number": 0}}], "errors": []})j";

TEST(RestQueueTest, JobsOfTheUserAreRowsAsSqueueHasThem) {
  const auto rows = RestQueue(Parse(kJobs38), "ada", "");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->at(0).job_id, JobId{118});
  EXPECT_EQ(rows->at(0).state.phase, JobPhase::kCompleted);
  EXPECT_EQ(rows->at(0).node_list, "n1");
  EXPECT_EQ(rows->at(0).end_time, absl::FromUnixSeconds(1795250260));
  EXPECT_EQ(rows->at(1).reason, "Dependency");
  EXPECT_EQ(rows->at(1).start_time, std::nullopt);
  EXPECT_EQ(rows->at(0).restarts, 0u);
  EXPECT_EQ(rows->at(1).restarts, 2u);
  const auto named = RestQueue(Parse(kJobs38), "ada", "k7m2-43-1");
  ASSERT_EQ(named->size(), 1u);
  EXPECT_EQ(named->at(0).job_id, JobId{119});
}

TEST(RestQueueTest, ListsOfStatesAndNumbersThatSayWhetherTheyAreSetAreReadToo) {
  const auto rows = RestQueue(Parse(kJobs40), "ada", "");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->at(0).state.word, "COMPLETING");
  EXPECT_EQ(rows->at(0).start_time, absl::FromUnixSeconds(1795250254));
  EXPECT_EQ(rows->at(0).end_time, std::nullopt);
}

TEST(RestQueueTest, AnAnswerWithoutAListOfJobsIsNoEmptyQueue) {
  for (const char* text :
       {"{}", R"j({"jobs": null})j", R"j({"jobs": {}})j",
        R"j({"jobs": [{"user_name": "ada", "job_state": "RUNNING"}]})j",
        R"j({"jobs": [{"user_name": "ada", "job_id": 7}]})j",
        R"j({"jobs": [{"user_name": "ada", "job_id": "7", "job_state": []}]})j"}) {
    EXPECT_EQ(RestQueue(Parse(text), "ada", "").status().code(), absl::StatusCode::kInternal)
        << text;
  }
  for (const char* text : {"", "[]", "<html>", "{\"jobs\": [", "7"}) {
    EXPECT_FALSE(ParseRestJson(text).has_value()) << text;
  }
}

TEST(RestQueueTest, TasksOfAnArrayAreJobsOfTheirOwn) {
  const auto rows = RestQueue(Parse(R"j({"jobs": [
      {"job_id": 137, "array_job_id": 136, "array_task_id": 0, "array_task_string": "",
       "job_state": "RUNNING", "name": "a", "user_name": "ada"},
      {"job_id": 136, "array_job_id": 136, "array_task_id": null, "array_task_string": "2-3%1",
       "job_state": "PENDING", "name": "a", "user_name": "ada"}]})j"),
                              "ada", "");
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::vector<std::string> ids;
  for (const QueueRow& row : *rows) ids.push_back(row.job_id.ToString());
  EXPECT_THAT(ids, ElementsAre("136_0", "136_2", "136_3"));
}

// slurmrestd 22.05 and 24.11 answer so for `--array=5-2403:2%4` and for ids without any order.
TEST(RestQueueTest, TasksThatWaitMayHaveAStepAndTheirListMayBeCutOff) {
  const auto rows = RestQueue(Parse(R"j({"jobs": [
      {"job_id": 1, "array_job_id": 1, "array_task_id": null, "array_task_string": "2399-2403:2%4",
       "job_state": "CANCELLED", "name": "a", "user_name": "ada"},
      {"job_id": 2, "array_job_id": {"set": true, "infinite": false, "number": 2},
       "array_task_id": {"set": false, "infinite": false, "number": 0},
       "array_task_string": "7,10,64,6...%2", "job_state": ["PENDING"], "name": "b",
       "user_name": "ada"}]})j"),
                              "ada", "");
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::vector<std::string> ids;
  for (const QueueRow& row : *rows) ids.push_back(row.job_id.ToString());
  EXPECT_THAT(ids, ElementsAre("1_2399", "1_2401", "1_2403", "2_7", "2_10", "2_64", "2"));
  EXPECT_EQ(rows->back().unnamed_from, 65u);
  EXPECT_EQ(rows->at(5).unnamed_from, std::nullopt);
}

TEST(RestWholeQueueTest, AJobThatWaitsMayNameSeveralPartitionsAndTasksCountEach) {
  const auto queue = RestWholeQueue(Parse(R"j({"jobs": [
      {"job_id": 1, "job_state": "RUNNING", "user_name": "ada", "partition": "debug"},
      {"job_id": 2, "job_state": "PENDING", "user_name": "bob", "partition": "debug,gpu",
       "array_job_id": 2, "array_task_id": null, "array_task_string": "1-3%2"},
      {"job_id": 3, "job_state": "COMPLETED", "user_name": "bob", "partition": "gpu"},
      {"job_id": 4, "job_state": "COMPLETING", "user_name": "bob", "partition": "gpu"}]})j"));
  ASSERT_TRUE(queue.ok()) << queue.status();
  ASSERT_EQ(queue->size(), 5u);
  EXPECT_EQ(queue->at(0).user, "ada");
  EXPECT_FALSE(queue->at(0).is_waiting);
  EXPECT_TRUE(queue->at(1).is_waiting);
  EXPECT_THAT(queue->at(3).partitions, ElementsAre("debug", "gpu"));
  EXPECT_FALSE(queue->at(4).is_waiting) << "it has its nodes still";
  EXPECT_FALSE(RestWholeQueue(Parse("{}")).ok());
}

TEST(RestJobTest, AWaitStatusIsACodeOrASignal) {
  const auto job = [](int status) {
    const json one = {{"job_id", 7}, {"job_state", "FAILED"}, {"exit_code", status}};
    return RestJob(json{{"jobs", json::array({one})}}, JobId{7});
  };
  EXPECT_EQ(job(768)->exit_code, 3);
  EXPECT_EQ(job(768)->signal, 0);
  EXPECT_EQ(job(9)->signal, 9);
  EXPECT_EQ(job(9)->exit_code, 0);
  EXPECT_FALSE(job(768)->from_accounting);
  EXPECT_EQ(RestJob(Parse(kJobs38), JobId{7}).status().code(), absl::StatusCode::kNotFound);
}

TEST(RestHistoryTest, ACodeThatIsAlwaysToldAsZeroIsNotBelieved) {
  const auto rows = RestHistory(Parse(R"j({"errors": [], "jobs": [
      {"job_id": 121, "name": "a", "user": "ada", "nodes": "n1", "state": {"current": "FAILED"},
       "time": {"start": 1795250314, "end": 1795250315, "elapsed": 1},
       "exit_code": {"status": "SUCCESS", "return_code": 0}, "kill_request_user": null},
      {"job_id": 122, "name": "b", "user": "ada", "nodes": "n1", "state": {"current": "FAILED"},
       "exit_code": {"status": "SIGNALED", "return_code": null,
                     "signal": {"signal_id": 9, "name": "Killed"}}},
      {"job_id": 123, "name": "c", "user": "ada", "nodes": "None assigned",
       "state": {"current": "CANCELLED"}, "kill_request_user": "root",
       "exit_code": {"status": "SUCCESS", "return_code": 0}},
      {"job_id": 124, "name": "d", "user": "bob", "state": {"current": "FAILED"}}]})j"),
                                "ada");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_FALSE(rows->at(0).exit_is_known);
  EXPECT_THAT(rows->at(0).Words(), HasSubstr("not told"));
  EXPECT_EQ(rows->at(0).end_time, absl::FromUnixSeconds(1795250315));
  EXPECT_TRUE(rows->at(1).exit_is_known);
  EXPECT_EQ(rows->at(1).signal, 9);
  EXPECT_EQ(rows->at(2).state.cancelled_by, "root");
  EXPECT_EQ(rows->at(2).node_list, "");
}

TEST(RestHistoryTest, TasksThatWaitAreAMask) {
  const auto ids = [](const std::string& mask) {
    const json job = {{"job_id", 20},
                      {"user", "ada"},
                      {"name", "a"},
                      {"state", {{"current", "PENDING"}}},
                      {"array", {{"job_id", 20}, {"task", mask}, {"task_id", nullptr}}}};
    std::vector<std::string> some;
    const auto rows = RestHistory(json{{"jobs", json::array({job})}}, "ada");
    if (!rows.ok()) return std::vector<std::string>{"unreadable"};
    for (const HistoryRow& row : *rows) some.push_back(row.job_id.ToString());
    return some;
  };
  EXPECT_THAT(ids("0x8"), ElementsAre("20_3"));
  EXPECT_THAT(ids("0x105%1"), ElementsAre("20_0", "20_2", "20_8"));
  EXPECT_THAT(ids("2-3"), ElementsAre("20_2", "20_3"));
  EXPECT_THAT(ids("0xg"), ElementsAre("unreadable"));
}

// slurmrestd 24.11 answers so: the tasks that have been started since are in the mask.
TEST(RestHistoryTest, ATasksOwnEntryCountsBesideTheRestOfItsArray) {
  const auto answer = Parse(R"j({"jobs": [
      {"job_id": 20, "name": "one", "user": "ada", "state": {"current": ["CANCELLED"]},
       "array": {"job_id": 20, "task_id": {"set": false, "infinite": false, "number": 0},
                 "task": "0xAA0"}, "time": {"end": 1795863149}},
      {"job_id": 21, "name": "one", "user": "ada", "state": {"current": ["COMPLETED"]},
       "nodes": "n1", "array": {"job_id": 20, "task": "",
       "task_id": {"set": true, "infinite": false, "number": 5}}, "time": {"end": 1795863152}}]})j");
  const auto rows = RestHistory(answer, "ada");
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::vector<std::string> ids;
  for (const HistoryRow& row : *rows) ids.push_back(row.job_id.ToString() + " " + row.state.word);
  EXPECT_THAT(ids,
              ElementsAre("20_5 COMPLETED", "20_7 CANCELLED", "20_9 CANCELLED", "20_11 CANCELLED"));
  const auto usage = RestUsage(answer, "ada");
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->size(), 4u);
}

TEST(RestHistoryTest, LaterShapesTellCodesAndSignals) {
  const auto rows = RestHistory(Parse(R"j({"jobs": [
      {"job_id": 121, "name": "a", "user": "ada", "nodes": "n1", "state": {"current": ["FAILED"]},
       "exit_code": {"status": ["ERROR"], "return_code": {"set": true, "number": 3},
                     "signal": {"id": {"set": false, "number": 0}, "name": ""}}}]})j"),
                                "ada");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->at(0).state.phase, JobPhase::kFailed);
  EXPECT_EQ(rows->at(0).exit_code, 3);
  EXPECT_TRUE(rows->at(0).exit_is_known);
}

TEST(RestServesTest, TheDescriptionTellsVersionsAndAccounting) {
  const RestServes serves = ReadRestServes(Parse(
      R"j({"paths": {"/slurm/v0.0.38/jobs": {"get": {}}, "/slurm/v0.0.39/jobs": {},
          "/slurm/v0.0.38/job/submit": {}, "/slurmdb/v0.0.38/jobs": {}, "/openapi": {}}})j"));
  EXPECT_EQ(serves.version, "v0.0.38");
  EXPECT_TRUE(serves.accounting);
  EXPECT_THAT(serves.versions, ElementsAre("v0.0.38", "v0.0.39"));
  EXPECT_EQ(ReadRestServes(Parse("{}")).version, "");
  const RestServes later = ReadRestServes(
      Parse(R"j({"paths": {"/slurm/v0.0.39/jobs": {}, "/slurmdb/v0.0.39/jobs": {}}})j"));
  EXPECT_EQ(later.version, "") << "it is not spoken";
  EXPECT_FALSE(later.accounting);
}

TEST(RestServesTest, LaterOnesEndTheirPathsWithASlash) {
  const RestServes serves = ReadRestServes(Parse(
      R"j({"paths": {"/slurm/v0.0.40/jobs/": {}, "/slurm/v0.0.42/jobs/": {},
          "/slurm/v0.0.42/jobs/state/": {}, "/slurm/v0.0.43/jobs/": {},
          "/slurmdb/v0.0.42/jobs/": {}}})j"));
  EXPECT_EQ(serves.version, "v0.0.42");
  EXPECT_EQ(serves.api(), 42);
  EXPECT_TRUE(serves.accounting);
  EXPECT_THAT(serves.versions, ElementsAre("v0.0.40", "v0.0.42", "v0.0.43"));
}

TEST(RestServesTest, TheBestOfTheVersionsThatAreSpokenIsChosen) {
  const RestServes both = ReadRestServes(Parse(
      R"j({"paths": {"/slurm/v0.0.37/jobs": {}, "/slurmdb/v0.0.37/jobs": {},
          "/slurm/v0.0.38/jobs": {}}})j"));
  EXPECT_EQ(both.version, "v0.0.38");
  EXPECT_FALSE(both.accounting) << "in that version it has none";
  const RestServes old = ReadRestServes(Parse(
      R"j({"paths": {"/slurm/v0.0.36/jobs": {}, "/slurm/v0.0.37/jobs": {},
          "/slurmdb/v0.0.37/jobs": {}}})j"));
  EXPECT_EQ(old.version, "v0.0.37");
  EXPECT_TRUE(old.accounting);
}

// A slurmrestd that says what the test wants.
class FakeHttp : public Http {
 public:
  explicit FakeHttp(absl::StatusOr<HttpResponse> answer) : answer_(std::move(answer)) {}
  absl::StatusOr<HttpResponse> Send(const HttpRequest&) override { return answer_; }

 private:
  const absl::StatusOr<HttpResponse> answer_;
};

absl::Status AskWell(absl::StatusOr<HttpResponse> answer) {
  CallGate gate({});
  RestClient client("http://slurm:6820", "ada", std::make_unique<FakeHttp>(std::move(answer)),
                    std::make_unique<TokenCommand>([](absl::Duration) { return "SLURM_JWT=t\n"; }),
                    &gate);
  client.Speak("v0.0.38");
  RestQuestion question;
  question.name = "rest-jobs";
  question.path = "/jobs";
  const absl::Status status = client.AskWell(question).status();
  EXPECT_EQ(gate.Calls().at("rest-jobs"), 1u);
  return status;
}

TEST(RestClientTest, EachWayNotToBeAnsweredSaysWhatToDo) {
  const struct {
    absl::StatusOr<HttpResponse> answer;
    const char* words;
  } cases[] = {
      {HttpResponse{401, "Authentication failure"}, "rest_token_file"},
      {HttpResponse{404, "Unable find requested URL."}, "does not serve API v0.0.38"},
      {HttpResponse{511, R"j({"errors": [{"description": "Unable to query jobs",
                             "error_number": 1007, "error": "Protocol authentication error"}],
                             "jobs": []})j"},
       "refuses the token"},
      {HttpResponse{200, "<html>hello</html>"}, "is not slurmrestd's"},
      {HttpResponse{500, R"j({"errors": [{"description": "Failed while looking for jobs",
                             "error_number": -1, "error": "Unspecified error"}], "jobs": []})j"},
       "refuses the token"},
      {HttpResponse{200, R"j({"errors": [{"description": "no", "error_number": 7}], "jobs": []})j"},
       "no"},
      {HttpResponse{503, R"j({"jobs": []})j"}, "HTTP 503"},
      {absl::UnavailableError("Connection refused"), "Look whether it runs"},
      {absl::DeadlineExceededError("timed out"), "timed out"},
      {absl::AbortedError("broke off"), "broke off"},
  };
  for (const auto& c : cases) {
    const absl::Status status = AskWell(c.answer);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.words));
  }
}

TEST(RestClientTest, OnlyAJobThatSlurmDoesNotKnowOrThatHasEndedIsMore) {
  EXPECT_EQ(AskWell(HttpResponse{500, R"j({"errors": [{"error_number": 2017,
                        "error": "Invalid job id specified"}]})j"})
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(AskWell(HttpResponse{500, R"j({"errors": [{"error_number": 2084,
                        "error": "Job has already finished"}]})j"})
                .code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AskWell(HttpResponse{404, R"j({"errors": [{"error_number": 2017,
                        "error": "Invalid job id specified"}]})j"})
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(AskWell(HttpResponse{200, R"j({"errors": [{"error_number": 9003,
                          "error": "Nothing found with query"}], "jobs": []})j"})
                  .ok());
}

// A cancel answers with 200 from v0.0.41 on, whatever became of it.
TEST(RestClientTest, ACancelTellsOfEachJobWhatBecameOfIt) {
  const auto cancel = [](int code, std::string_view words) {
    return AskWell(
        HttpResponse{200, fmt::format(R"j({{"errors": [], "status": [{{"step_id": "7", "error":
                             {{"code": {}, "string": "{}", "message": "{}"}}}}]}})j",
                                      code, words, words)});
  };
  EXPECT_TRUE(cancel(0, "No error").ok());
  EXPECT_EQ(cancel(2017, "Invalid job id specified").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cancel(2021, "Job/step already completing or completed").code(),
            absl::StatusCode::kFailedPrecondition);
  const absl::Status denied = cancel(2002, "Access/permission denied");
  EXPECT_EQ(denied.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(denied.message()), HasSubstr("Access/permission denied"));
  EXPECT_TRUE(AskWell(HttpResponse{200, R"j({"errors": [], "status": []})j"}).ok());
}

}  // namespace
}  // namespace muster::slurm
