// Tests a preflight's words about slurmrestd.
#include "agents/slurm/rest_checks.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "agents/slurm/rest_json.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr v1::CheckResult kOk = v1::CHECK_RESULT_OK;
constexpr v1::CheckResult kWarn = v1::CHECK_RESULT_WARN;
constexpr v1::CheckResult kFail = v1::CHECK_RESULT_FAIL;
constexpr absl::Time kNow = absl::FromUnixSeconds(1795250000);

// Returns the one line of a list that has no other.
v1::ClusterCheck Only(const agents::CheckList& list) {
  EXPECT_EQ(list.checks().checks_size(), 1);
  EXPECT_NE(list.checks().checks(0).code(), v1::CHECK_CODE_UNSPECIFIED);
  return list.checks().checks(0);
}

std::string Token(const std::string& user, absl::Duration rest) {
  return "x." +
         absl::WebSafeBase64Escape(
             json{{"exp", absl::ToUnixSeconds(kNow + rest)}, {"sun", user}}.dump()) +
         ".x";
}

RestAnswer Answer(const char* text) {
  const std::optional<json> parsed = ParseRestJson(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return {200, std::make_shared<const json>(*parsed)};
}

TEST(JudgeTokenTest, ItsOwnerAndItsEndAreTold) {
  struct Case {
    std::string owner;
    absl::Duration rest;
    std::string file;
    v1::CheckResult result;
    const char* words;
  };
  const Case cases[] = {
      {"ada", absl::Hours(24), "/etc/token", kOk, "from \"/etc/token\", for user ada, ends in"},
      {"ada", absl::Minutes(20), "/etc/token", kWarn, "20"},
      {"ada", absl::Minutes(20), "", kOk, "from scontrol token"},
      {"bob", absl::Hours(24), "/etc/token", kWarn, "for user bob"},
  };
  for (const Case& one : cases) {
    agents::CheckList checks;
    EXPECT_TRUE(JudgeToken(Token(one.owner, one.rest), "ada", one.file, kNow, &checks));
    EXPECT_EQ(Only(checks).result(), one.result) << Only(checks).DebugString();
    EXPECT_THAT(Only(checks).seen(), HasSubstr(one.words));
  }
  agents::CheckList opaque;
  EXPECT_TRUE(JudgeToken(std::string("opaque"), "ada", "/etc/token", kNow, &opaque));
  EXPECT_EQ(Only(opaque).result(), kOk);
  EXPECT_THAT(Only(opaque).seen(), HasSubstr("does not say when it ends"));
  agents::CheckList none;
  EXPECT_FALSE(JudgeToken(absl::FailedPreconditionError("it ended at 2001"), "ada", "/etc/token",
                          kNow, &none));
  EXPECT_EQ(Only(none).result(), kFail);
  EXPECT_THAT(Only(none).seen(), HasSubstr("2001"));
}

TEST(JudgeServesTest, AnOldVersionIsNotAnAbsentServer) {
  RestServes serves;
  serves.versions = {"v0.0.37", "v0.0.38"};
  serves.version = "v0.0.38";
  agents::CheckList good;
  EXPECT_TRUE(JudgeServes("http://slurm:6820", serves, &good));
  EXPECT_THAT(Only(good).seen(), HasSubstr("v0.0.37, v0.0.38; v0.0.38 is spoken"));
  agents::CheckList old;
  EXPECT_FALSE(JudgeServes("http://slurm:6820", absl::FailedPreconditionError("v0.0.35"), &old));
  EXPECT_THAT(Only(old).remedy(), HasSubstr("openapi/dbv0.0.38"));
  agents::CheckList absent;
  EXPECT_FALSE(JudgeServes("http://slurm:6820", absl::UnavailableError("refused"), &absent));
  EXPECT_THAT(Only(absent).remedy(), HasSubstr("slurm.rest_url"));
}

TEST(JudgePingTest, OneControllerThatIsUpWillDo) {
  agents::CheckList backup;
  EXPECT_TRUE(JudgePing(Answer(R"j({"pings": [
      {"hostname": "a", "ping": "DOWN", "mode": "primary"},
      {"hostname": "b", "ping": "UP", "mode": "backup1"}]})j"),
                        &backup));
  EXPECT_EQ(Only(backup).seen(), "primary at a is DOWN, backup1 at b is UP");
  for (const absl::StatusOr<RestAnswer>& ping : std::vector<absl::StatusOr<RestAnswer>>{
           Answer(R"j({"pings": [{"hostname": "a", "ping": "DOWN", "mode": "primary"}]})j"),
           Answer("{}"), absl::UnavailableError("slurmctld config is unable to load")}) {
    agents::CheckList checks;
    EXPECT_FALSE(JudgePing(ping, &checks));
    EXPECT_EQ(Only(checks).result(), kFail);
    EXPECT_FALSE(Only(checks).seen().empty());
  }
}

TEST(RestAssociationsTest, OnlyThoseOfTheUserOnTheCluster) {
  const RestAnswer answer = Answer(R"j({"associations": [
      {"account": "test", "cluster": "lab", "partition": null, "user": "ada",
       "qos": ["normal", "one", "17"]},
      {"account": "test", "cluster": "other", "partition": "gpu", "user": "ada", "qos": []},
      {"account": "root", "cluster": "lab", "partition": null, "user": null, "qos": ["normal"]}]})j");
  const auto mine = RestAssociations(*answer.json, "lab", "ada");
  ASSERT_TRUE(mine.ok()) << mine.status();
  ASSERT_EQ(mine->size(), 1u);
  EXPECT_EQ(mine->at(0).account, "test");
  EXPECT_THAT(mine->at(0).qos, ElementsAre("normal", "one"));
  EXPECT_EQ(RestAssociations(*answer.json, "", "ada")->size(), 2u);
  EXPECT_FALSE(RestAssociations(*Answer("{}").json, "lab", "ada").ok());
}

TEST(RestControllerTimeTest, IsTheTimeOfTheDiagnosis) {
  EXPECT_EQ(RestControllerTime(*Answer(R"j({"statistics": {"req_time": 1795250000}})j").json),
            kNow);
  EXPECT_EQ(RestControllerTime(*Answer("{}").json), std::nullopt);
}

}  // namespace
}  // namespace muster::slurm
