#include "agents/slurm/rest_submission.h"

#include <nlohmann/json.hpp>

#include "agents/slurm/http.h"
#include "agents/slurm/rest_token.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Submit(std::vector<std::string> options, int api = 38) {
  const auto body = RestSubmission({std::move(options), "/shared/runs/a/batch.sh", {"/shared/a"}},
                                   {{"PATH", "/usr/bin"}}, api);
  EXPECT_TRUE(body.ok()) << body.status();
  return json::parse(body.value_or("{}"));
}

TEST(RestSubmissionTest, OptionsAreFields) {
  const json body = Submit({"--job-name=k7m2-42-1", "--dependency=singleton", "--nodes=2",
                            "--ntasks-per-node=3", "--cpus-per-task=4", "--mem=100M", "--time=7",
                            "--export=ALL", "--propagate=NONE", "--no-requeue", "--exclusive",
                            "--nice=5", "--output=/shared/a/slurm.out", "--chdir=/shared/a"});
  const json expected = {
      {"name", "k7m2-42-1"},
      {"dependency", "singleton"},
      {"nodes", 2},
      {"tasks_per_node", 3},
      {"tasks", 6},
      {"cpus_per_task", 4},
      {"memory_per_node", 100},
      {"time_limit", "7"},
      {"no_requeue", true},
      {"exclusive", "exclusive"},
      {"nice", 5},
      {"standard_output", "/shared/a/slurm.out"},
      {"current_working_directory", "/shared/a"},
      {"environment",
       {{"PATH", "/usr/bin"}, {"SLURM_CPUS_PER_TASK", "4"}, {"SLURM_NTASKS_PER_NODE", "3"}}}};
  EXPECT_EQ(body["job"], expected);
}

TEST(RestSubmissionTest, FromV40OnValuesHaveTypes) {
  const json body = Submit({"--job-name=k7m2-42-1",
                            "--nodes=2",
                            "--ntasks-per-node=3",
                            "--cpus-per-task=4",
                            "--mem=100M",
                            "--time=1-02:03:04",
                            "--export=ALL",
                            "--no-requeue",
                            "--exclusive",
                            "--gres=gpu:h100:2,nic:1",
                            "--gpus-per-node=h100:1",
                            "--mem-per-gpu=2G",
                            "--exclude=n[1-2]",
                            "--mail-type=end,TIME_LIMIT_80",
                            "--signal=B:USR1@90",
                            "--spread-job",
                            "--kill-on-invalid-dep=yes",
                            "--open-mode=append",
                            "--wait-all-nodes=1",
                            "--delay-boot=2"},
                           42);
  const json expected = {{"name", "k7m2-42-1"},
                         {"nodes", "2"},
                         {"tasks_per_node", 3},
                         {"tasks", 6},
                         {"cpus_per_task", 4},
                         {"memory_per_node", {{"set", true}, {"number", 100}}},
                         {"time_limit", {{"set", true}, {"number", 1564}}},
                         {"requeue", false},
                         {"shared", {"none"}},
                         {"tres_per_node", "gres/gpu:h100:2,gres/nic:1,gres/gpu:h100:1"},
                         {"memory_per_tres", "gres/gpu:2048"},
                         {"excluded_nodes", {"n[1-2]"}},
                         {"mail_type", {"END", "TIME=80%"}},
                         {"kill_warning_signal", "USR1"},
                         {"kill_warning_delay", {{"set", true}, {"number", 90}}},
                         {"kill_warning_flags", {"BATCH_JOB"}},
                         {"flags", {"SPREAD_JOB", "KILL_INVALID_DEPENDENCY"}},
                         {"open_mode", {"APPEND"}},
                         {"wait_all_nodes", true},
                         {"delay_boot", 120},
                         {"environment",
                          {"PATH=/usr/bin", "SLURM_CPUS_PER_TASK=4", "SLURM_GPUS_PER_NODE=h100:1",
                           "SLURM_MEM_PER_GPU=2G", "SLURM_NTASKS_PER_NODE=3"}}};
  EXPECT_EQ(body["job"], expected);
}

TEST(RestSubmissionTest, FromV40OnTimesAreMinutes) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"7", 7}, {"7:30", 8}, {"1:00:00", 60}, {"2-0", 2880}, {"1-2:3", 1563}, {"1-2:3:4", 1564}};
  for (const auto& [text, minutes] : cases) {
    EXPECT_EQ(Submit({fmt::format("--time={}", text)}, 40)["job"]["time_limit"]["number"], minutes)
        << text;
  }
}

TEST(RestSubmissionTest, WhatV40CannotSayIsRefusedByName) {
  for (const char* option :
       {"--time=soon", "--time=1:2:3:4", "--time=-5", "--mail-type=often", "--gres=none", "--gpus",
        "--signal=R:USR1@60", "--exclusive=topo", "--cores-per-socket=2", "--distribution=block",
        "--gres-flags=multiple-tasks-per-sharing", "--spread-job=yes", "--wait-all-nodes=2"}) {
    EXPECT_THAT(std::string(RestSubmission({{option}, "/s", {}}, {}, 40).status().message()),
                HasSubstr(option));
  }
  EXPECT_EQ(Submit({"--distribution=block"}, 41)["job"]["distribution"], "block");
}

TEST(RestSubmissionTest, MemoryIsInMebibytesWhateverItsUnit) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"100", 100}, {"2G", 2048}, {"1025K", 2}, {"3gb", 3072}, {"1T", 1 << 20}};
  for (const auto& [text, mebibytes] : cases) {
    EXPECT_EQ(Submit({fmt::format("--mem={}", text)})["job"]["memory_per_node"], mebibytes) << text;
  }
}

TEST(RestSubmissionTest, TheScriptStartsOursWithItsArgumentsQuoted) {
  const auto body = RestSubmission({{}, "/runs/a b/batch.sh", {"$(id)", "#;"}}, {}, 38);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(json::parse(*body)["script"],
            "#!/bin/bash\nexec /bin/bash '/runs/a b/batch.sh' '$(id)' '#;'\n");
}

TEST(RestSubmissionTest, WhatItCannotSayIsRefusedByName) {
  for (const char* option :
       {"--contiguous", "--nodes=1-4", "--signal=B:USR1@60", "--export=NONE", "--mem=2X",
        "--exclusive=topo", "--hint=multithread", "-N1", "--requeue=maybe", "--job-name"}) {
    const auto body = RestSubmission({{option}, "/s", {}}, {}, 38);
    EXPECT_EQ(body.status().code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_THAT(std::string(body.status().message()), HasSubstr(option));
  }
  EXPECT_EQ(RestSubmission({{"--comment=\xff"}, "/s", {}}, {}, 38).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RestTokenTest, ATokenIsOneWordAloneOrAsScontrolPrintsIt) {
  EXPECT_EQ(*ParseToken("SLURM_JWT=a.b.c\n"), "a.b.c");
  EXPECT_EQ(*ParseToken("a.b.c"), "a.b.c");
  for (const char* text : {"", "\n", "a b", "SLURM_JWT=", "a\nb", "a\r\nX-SLURM-USER-NAME: root"}) {
    const auto token = ParseToken(text);
    EXPECT_FALSE(token.ok()) << text;
    EXPECT_EQ(std::string(token.status().message()).find("a b"), std::string::npos)
        << "it may be a token";
  }
}

TEST(RestTokenTest, ItsEndIsInTheToken) {
  // The token is {"exp":1795250253,"iat":1,"sun":"ada"}.
  EXPECT_EQ(TokenEnd("h.eyJleHAiOjE3OTUyNTAyNTMsImlhdCI6MSwic3VuIjoiYWRhIn0.s"),
            absl::FromUnixSeconds(1795250253));
  for (const char* token : {"", "a.b.c", "a", "h.e30.s", "h.W10.s", "..", "h.!!.s"}) {
    EXPECT_EQ(TokenEnd(token), std::nullopt) << token;
  }
}

TEST(RestTokenTest, ACommandIsAskedAgainBeforeItsTokenEnds) {
  int asked = 0;
  const absl::Time start = absl::FromUnixSeconds(1795250253 - 1000);
  TokenCommand tokens([&](absl::Duration) {
    ++asked;
    return "SLURM_JWT=h.eyJleHAiOjE3OTUyNTAyNTMsImlhdCI6MSwic3VuIjoiYWRhIn0.s\n";
  });
  EXPECT_TRUE(tokens.Get(start).ok());
  EXPECT_TRUE(tokens.Get(start + absl::Seconds(799)).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(tokens.Get(start + absl::Seconds(801)).ok());
  EXPECT_EQ(asked, 2);
  tokens.Doubt();
  EXPECT_TRUE(tokens.Get(start + absl::Seconds(802)).ok());
  EXPECT_EQ(asked, 3);
}

TEST(HttpUrlTest, OnlyAnAddressIsTaken) {
  for (const char* url : {"http://slurm:6820", "https://slurm.example.org", "http://[::1]:6820/",
                          "unix:/run/slurmrestd.sock"}) {
    EXPECT_TRUE(CheckHttpUrl(url).ok()) << url;
  }
  for (const char* url : {"", "slurm:6820", "ftp://slurm", "http://", "http:///x",
                          "http://slurm/api", "unix:relative", "unix:/", "http://me:pw@slurm"}) {
    EXPECT_FALSE(CheckHttpUrl(url).ok()) << url;
  }
}

}  // namespace
}  // namespace muster::slurm
