#include "agents/slurm/queue.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseQueueTest, ReadsWhatSqueuePrints) {
  const auto rows = ParseQueue(
      "3\037N/A\037k7m2-42-1\037"
      "CANCELLED\037JobHeldUser\037\0371795226828\0371795226829\0371795226829\0370"
      "\037gpu\037lab\037normal\n"
      "1\0374\037k7m2-43-1\037RUNNING\037None\037n[1-2]"
      "\0371795226825\0371795226826\0371795227426\0372"
      "\037a,b\037(null)\037(null)\n"
      "9\037N/A\037k7m2-44-1\037PENDING\037ReqNodeNotAvail, "
      "UnavailableNodes:n1\037\0371795226825\037N/A\037N/A\0370\037\037\037\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].job_id, JobId{3});
  EXPECT_EQ((*rows)[0].name, "k7m2-42-1");
  EXPECT_EQ((*rows)[0].state.phase, JobPhase::kCancelled);
  EXPECT_EQ((*rows)[1].job_id, (JobId{1, 4}));
  EXPECT_EQ((*rows)[1].node_list, "n[1-2]");
  EXPECT_EQ((*rows)[1].start_time, absl::FromUnixSeconds(1795226826));
  EXPECT_EQ((*rows)[1].restarts, 2u);
  EXPECT_EQ((*rows)[2].reason, "ReqNodeNotAvail, UnavailableNodes:n1");
  EXPECT_EQ((*rows)[2].start_time, std::nullopt);
  EXPECT_EQ((*rows)[0].allocation.partition(), "gpu");
  EXPECT_EQ((*rows)[0].allocation.account(), "lab");
  EXPECT_EQ((*rows)[0].allocation.qos(), "normal");
  EXPECT_EQ((*rows)[1].allocation.ByteSizeLong(), 0u) << "nothing is chosen yet";
}

TEST(ParseQueueOfAllTest, NobodysNameIsALineOfOthers) {
  const std::string separator = "\037nonce";
  const auto line = [](const std::string& by, const std::string& name, const std::string& user) {
    std::string text = "7";
    for (const std::string& column :
         {std::string("N/A"), name, std::string("RUNNING"), std::string("None"), std::string("n1"),
          std::string("1"), std::string("2"), std::string("3"), std::string("0"),
          std::string("cpu"), std::string("lab"), std::string("normal"), user})
      text += by + column;
    return text + "\n";
  };
  const std::string forged = line("\037", "k7m2-43-1", "1002");
  const std::vector<QueueRow> rows = ParseQueueOfAll(
      line(separator, "k7m2-42-1", "1001") + line(separator, "mine\n" + forged + "x", "1003") +
          line(separator, "k7m2-44-1\037RUNNING", "1003"),
      separator);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "k7m2-42-1");
  EXPECT_EQ(rows[0].user_id, 1001u);
  EXPECT_EQ(rows[0].allocation.qos(), "normal");
  EXPECT_EQ(rows[1].name, "k7m2-44-1\037RUNNING");
  EXPECT_EQ(rows[1].user_id, 1003u);
}

TEST(ParseQueueTest, AnEmptyQueueIsAnAnswer) {
  const auto rows = ParseQueue("");
  ASSERT_TRUE(rows.ok());
  EXPECT_THAT(*rows, IsEmpty());
}

TEST(ParseQueueTest, ALineThatCannotBeReadSpoilsTheAnswer) {
  for (const char* output : {"1\037name\037RUNNING\n",
                             "x\037"
                             "a\037RUNNING\037\037\037\037\037\n",
                             "1\037"
                             "a\037\037\037\037\037\037\n",
                             "slurm_load_jobs error\n"}) {
    EXPECT_FALSE(ParseQueue(output).ok()) << output;
  }
}

TEST(QueueArgumentsTest, AsksForEveryStateAndForSingleJobs) {
  EXPECT_THAT(QueueArguments(), Contains("--states=all"));
  EXPECT_THAT(QueueArguments(), Contains("--me"));
  EXPECT_THAT(QueueArguments(), Contains("--array"));
  EXPECT_THAT(QueueArguments("k7m2-42-1"), Contains("--name=k7m2-42-1"));
}

TEST(ExpandNodeListTest, ReadsSlurmsShortForm) {
  EXPECT_THAT(ExpandNodeList("n1"), ElementsAre("n1"));
  EXPECT_THAT(ExpandNodeList("n[1-2,7],gpu,x[08-10]-ib"),
              ElementsAre("n1", "n2", "n7", "gpu", "x08-ib", "x09-ib", "x10-ib"));
  EXPECT_THAT(ExpandNodeList(""), IsEmpty());
}

TEST(ExpandNodeListTest, WhatCannotBeReadNamesNoNodes) {
  for (const char* list :
       {"n[1", "n[1-]", "n[2-1]", "n[1-2]x[1-2]", "n[1-99999999999]", "n[0-10000]", "n[a]"}) {
    EXPECT_THAT(ExpandNodeList(list), IsEmpty()) << list;
  }
}

}  // namespace
}  // namespace muster::slurm
