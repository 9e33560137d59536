// The options, variables and columns that users of sinfo know, against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/clients/slurm_verbs_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SinfoOptionsTest : public SlurmVerbsTest {
 protected:
  SinfoOptionsTest() {
    broker_.describe_cluster = [this](const auto&) -> absl::StatusOr<v1::DescribeClusterResponse> {
      v1::DescribeClusterResponse response;
      v1::ClusterDetails& details = *response.mutable_details();
      for (const char* name : {"gpu", "cpu"}) {
        v1::PoolLoad* pool = details.add_pools();
        pool->set_pool(name);
        pool->mutable_now()->set_state("up");
      }
      for (const char* name : {"n2", "n10"}) {
        v1::Node* node = details.add_nodes();
        node->set_name(name);
        node->set_state(std::string(name) == "n2" ? "idle" : "mixed");
        node->set_cpus(8);
        node->set_memory_bytes(uint64_t{16} << 30);
        node->set_used_memory_bytes(uint64_t{1} << 30);
        node->add_pools("gpu");
        node->add_pools("cpu");
        (*node->mutable_gpus())["h100"] = 4;
        (*node->mutable_used_gpus())["h100"] = 1;
      }
      details.mutable_nodes(1)->set_used_memory_bytes(used_bytes_);
      return response;
    };
  }

  Outcome RunWith(std::vector<std::string> environment, std::vector<std::string> words) {
    return Command(broker_.address(), std::move(words), false, std::move(environment)).Finish();
  }

  uint64_t used_bytes_ = uint64_t{1} << 30;  // of n10
};

TEST_F(SinfoOptionsTest, VariablesSetOptionsAndWhatIsTypedWins) {
  EXPECT_EQ(RunWith({"SINFO_FORMAT=%R %D"}, {"sinfo", "-h"}).out, "gpu 2\ncpu 2\n");
  EXPECT_EQ(RunWith({"SINFO_FORMAT=%R"}, {"sinfo", "-ho", "%D"}).out, "2\n");
  EXPECT_THAT(RunWith({"SINFO_FORMAT=%R"}, {"sinfo", "-N"}).out, HasSubstr("NODELIST"));
  EXPECT_EQ(RunWith({"SINFO_PARTITION=cpu"}, {"sinfo", "-ho", "%R"}).out, "cpu\n");
  EXPECT_EQ(RunWith({"SINFO_SORT=P"}, {"sinfo", "-ho", "%R"}).out, "cpu\ngpu\n");
}

TEST_F(SinfoOptionsTest, RowsAreSortedAsAsked) {
  EXPECT_EQ(Run({"sinfo", "-ho", "%R", "-S", "-P"}).out, "gpu\ncpu\n");
  EXPECT_EQ(Run({"sinfo", "-ho", "%R", "-S", "P"}).out, "cpu\ngpu\n");
  EXPECT_EQ(Run({"sinfo", "-ho", "%R", "-S", "#P"}).out, "gpu\ncpu\n");
  EXPECT_EQ(Run({"sinfo", "-hNp", "gpu", "-o", "%N", "-S", "-N"}).out, "n10\nn2\n");
  EXPECT_EQ(Run({"sinfo", "-hp", "gpu", "-o", "%t", "-S", "t"}).out, "idle\nmix\n");
  EXPECT_THAT(Run({"sinfo", "-S", "?"}).err, HasSubstr("--sort: \"?\" is not a column"));
}

TEST_F(SinfoOptionsTest, ColumnsHaveLongNamesAndAWordForWhatIsNotKnown) {
  EXPECT_EQ(Run({"sinfo", "-p", "gpu", "-O", "NodeList:9,CPUs:5,AllocMem:9,GresUsed:12,foo"}).out,
            "NODELIST CPUS ALLOCMEM GRES_USED\nn[2,10]  8    1024     gpu:h100:1\n");
  EXPECT_THAT(Run({"sinfo", "-O", "foo,Nodes"}).err,
              HasSubstr("sinfo: error: Invalid node format specification: foo\n"));
  EXPECT_EQ(Run({"sinfo", "-hp", "gpu", "-o", "%e %O %z %w %d %p"}).out,
            "N/A N/A N/A N/A N/A N/A\n");
  EXPECT_THAT(Run({"sinfo", "-p", "gpu", "-o", "%all"}).out, StartsWith("AVAIL|ACTIVE_FEATURES|"));
}

TEST_F(SinfoOptionsTest, AListThatNamesNothingShowsNothing) {
  for (const char* option : {"-t", "-p", "-n"})
    EXPECT_EQ(Run({"sinfo", "-h", option, ""}).out, "") << option;
  EXPECT_THAT(Run({"sinfo", "-M", "all"}).out, StartsWith("CLUSTER: lab\n"));
  EXPECT_THAT(Run({"sinfo", "--noconvert"}).out, StartsWith("PARTITION"));
}

TEST_F(SinfoOptionsTest, NodesAreNamedAsTheyAreShown) {
  EXPECT_EQ(Run({"sinfo", "-hp", "gpu", "-n", "n[9-10]", "-o", "%N"}).out, "n10\n");
}

TEST_F(SinfoOptionsTest, ColumnsAreAsWideWithoutTheirHeading) {
  const std::string with = Run({"sinfo"}).out;
  EXPECT_EQ(with.substr(with.find('\n') + 1), Run({"sinfo", "-h"}).out);
  EXPECT_THAT(Run({"sinfo", "-h"}).out, StartsWith("gpu          up"));
}

TEST_F(SinfoOptionsTest, ATextInPlaceOfAWidthFollowsTheValue) {
  EXPECT_EQ(Run({"sinfo", "-hp", "gpu", "-O", "Partition:|,NodeList:abc"}).out, "gpu|n[2,10]abc\n");
  EXPECT_EQ(Run({"squeue", "-hj7", "-O", "State:|,JobID"}).out, "RUNNING|7\n");
  EXPECT_EQ(Run({"sinfo", "-hp", "gpu", "-n", "n2", "-O", "StateComplete"}).out, "idle\n");
  EXPECT_THAT(Run({"sinfo", "-O", "All"}).out, HasSubstr("STATECOMPLETE"));
}

TEST_F(SinfoOptionsTest, NodesOfAnotherUseHaveTheirOwnRow) {
  used_bytes_ = uint64_t{2} << 30;
  EXPECT_EQ(Run({"sinfo", "-hp", "gpu", "-O", "NodeList:5,AllocMem:5"}).out,
            "n10  2048\nn2   1024\n");
}

}  // namespace
}  // namespace muster::cli
