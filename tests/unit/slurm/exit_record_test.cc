#include "agents/slurm/exit_record.h"

#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

constexpr std::string_view kWhole =
    "job=17 restart=1\nphase=command problem=none\ncode=0 signal=9 terminated=0 continued=1 "
    "rank=2\nstart=100 "
    "end=160\nnodes=n[1-2]\ncomplete\n";

TEST(ParseExitRecordTest, ReadsAWholeRecord) {
  const auto record = ParseExitRecord(kWhole);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->job_id, JobId{17});
  EXPECT_EQ(record->restart, 1u);
  EXPECT_EQ(record->phase, "command");
  EXPECT_EQ(record->problem, ExitRecord::Problem::kNone);
  EXPECT_EQ(record->signal, 9);
  EXPECT_EQ(record->rank, 2u);
  EXPECT_EQ(record->node_list, "n[1-2]");
  EXPECT_EQ(record->end - record->start, absl::Minutes(1));
  EXPECT_FALSE(record->terminated);
  EXPECT_TRUE(record->continued);
  EXPECT_FALSE(record->EndedWithZero());
}

TEST(ParseExitRecordTest, APartOfARecordIsNone) {
  for (size_t size = 0; size < kWhole.size(); ++size) {
    EXPECT_FALSE(ParseExitRecord(kWhole.substr(0, size)).has_value()) << size;
  }
}

TEST(ParseExitRecordTest, ACauseHasATextThatSetsNothingElse) {
  const std::string begin(kWhole.substr(0, kWhole.find("complete")));
  const auto record =
      ParseExitRecord(begin + "cause=output about=/a b/code=7 cause=input about=x.out\ncomplete\n");
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->cause, ExitRecord::Cause::kOutput);
  EXPECT_EQ(record->about, "/a b/code=7 cause=input about=x.out");
  EXPECT_EQ(record->code, 0);
  const auto cut = ParseExitRecord(begin + "cause=output about=caf\xc3\ncomplete\n");
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->about, "caf");
}

TEST(ParseExitRecordTest, ARecordOfAnOlderOrANewerBatchScriptHasNoCause) {
  const auto older = ParseExitRecord(kWhole);
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->cause, ExitRecord::Cause::kNone);
  const auto newer = ParseExitRecord(std::string(kWhole.substr(0, kWhole.find("complete"))) +
                                     "cause=moon about=full\ncomplete\n");
  ASSERT_TRUE(newer.has_value());
  EXPECT_EQ(newer->cause, ExitRecord::Cause::kNone);
}

TEST(ParseExitRecordTest, ARecordWithStrangeValuesIsNone) {
  for (const char* text : {"job=x restart=0\nphase=command problem=none\ncode=0 signal=0 "
                           "terminated=0 continued=0 rank=0\nstart=1 end=1\ncomplete\n",
                           "job=1 restart=0\nphase=command problem=odd\ncode=0 signal=0 "
                           "terminated=0 continued=0 rank=0\nstart=1 end=1\ncomplete\n",
                           "job=1 restart=0\nphase=command problem=none\ncode= signal=0 "
                           "terminated=0 continued=0 rank=0\nstart=1 end=1\ncomplete\n",
                           "\ncomplete\n"}) {
    EXPECT_FALSE(ParseExitRecord(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace muster::slurm
