#include "agents/slurm/details.h"

#include "agents/slurm/key_values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The output of Slurm 22.05.
constexpr char kNodes[] =
    "NodeName=n2 Arch=x86_64 CoresPerSocket=1  CPUAlloc=3 CPUEfctv=8 CPUTot=8 CPULoad=11.89 "
    "AvailableFeatures=fast,ib ActiveFeatures=fast,ib Gres=gpu:h100:4(S:0-1) GresDrain=N/A "
    "GresUsed=gpu:h100:2(IDX:0-1) NodeAddr=127.0.0.1 NodeHostName=vm Port=23910 Version=22.05.8 "
    "OS=Linux 6.1 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=16000 AllocMem=1000 FreeMem=18973 "
    "Sockets=8 Boards=1 State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
    "Partitions=debug,gpu  BootTime=2026-11-21T01:37:12 CfgTRES=cpu=8,mem=16000M,billing=8 "
    "AllocTRES=cpu=3,mem=1000M CapWatts=n/a\n"
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=8 CPULoad=0.06 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:h100:4 GresUsed=gpu:h100:0(IDX:N/A) "
    "RealMemory=16000 AllocMem=0 State=IDLE+DRAIN Partitions=debug AllocTRES= "
    "Reason=fan broken, State=bad [root@1795262039]\n"
    "NodeName=cpu1 CPUAlloc=0 CPUTot=4 Gres=(null) GresUsed= RealMemory=2000 AllocMem=0 "
    "State=DOWN* Partitions=debug Reason=Not [x@responding]\n";

constexpr char kPartitions[] =
    "PartitionName=debug AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES "
    "QoS=N/A DefaultTime=00:10:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO "
    "MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-2] "
    "RootOnly=NO ReqResv=NO OverSubscribe=NO PreemptMode=OFF State=UP TotalCPUs=16 "
    "JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=32000M\n"
    "PartitionName=gpu AllowGroups=vis,ml AllowAccounts=vision DenyQos=low AllocNodes=ALL "
    "Default=NO QoS=part DefaultTime=NONE MaxNodes=2 MaxTime=UNLIMITED MinNodes=1 RootOnly=NO "
    "ReqResv=NO OverSubscribe=EXCLUSIVE PreemptMode=REQUEUE State=DRAIN\n";

TEST(KeyValuesTest, AValueGoesOnUntilTheNextKey) {
  const auto values = ParseKeyValues("A=1 OS=Linux 6.1 #1 SMP  B=x=y C=(null) D=N/A A=2");
  EXPECT_THAT(values, UnorderedElementsAre(Pair("A", "1"), Pair("OS", "Linux 6.1 #1 SMP"),
                                           Pair("B", "x=y"), Pair("C", ""), Pair("D", "")));
}

TEST(ParseNodesTest, ReadsWhatEachHasAndWhatJobsHaveOfIt) {
  const auto nodes = ParseNodes(kNodes);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 3u);
  const v1::Node& mixed = (*nodes)[0];
  EXPECT_EQ(mixed.name(), "n2");
  EXPECT_EQ(mixed.state(), "mixed");
  EXPECT_EQ(mixed.gres(), "gpu:h100:4(S:0-1)");
  EXPECT_EQ(mixed.cpus(), 8u);
  EXPECT_EQ(mixed.used_cpus(), 3u);
  EXPECT_EQ(mixed.memory_bytes(), 16000ull << 20);
  EXPECT_EQ(mixed.used_memory_bytes(), 1000ull << 20);
  EXPECT_THAT(mixed.gpus(), UnorderedElementsAre(Pair("h100", 4)));
  EXPECT_THAT(mixed.used_gpus(), UnorderedElementsAre(Pair("h100", 2)));
  EXPECT_THAT(mixed.pools(), ElementsAre("debug", "gpu"));
  EXPECT_THAT(mixed.features(), ElementsAre("fast", "ib"));
  EXPECT_EQ(mixed.reason(), "");
  EXPECT_EQ((*nodes)[1].state(), "idle+drain");
  EXPECT_EQ((*nodes)[1].reason(), "fan broken, State=bad");
  EXPECT_EQ((*nodes)[1].reason_user(), "root");
  EXPECT_EQ((*nodes)[1].reason_time().seconds(), 1795262039);
  EXPECT_THAT((*nodes)[1].features(), IsEmpty());
  EXPECT_EQ((*nodes)[2].state(), "down*");
  EXPECT_EQ((*nodes)[2].reason(), "Not [x@responding]") << "an admin may write anything";
  EXPECT_FALSE((*nodes)[2].has_reason_time());
  EXPECT_EQ((*nodes)[2].gres(), "");
  EXPECT_THAT((*nodes)[2].gpus(), IsEmpty());
}

TEST(ParseNodesTest, ALineThatIsNoNodeIsNoAnswer) {
  EXPECT_FALSE(ParseNodes("slurm_load_node error: Unable to contact\n").ok());
  EXPECT_TRUE(ParseNodes("").ok());
}

TEST(ParsePartitionsTest, TellsLimitsThatKeepSomebodyOut) {
  const auto partitions = ParsePartitions(kPartitions);
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2u);
  const Partition& open = (*partitions)[0];
  EXPECT_EQ(open.pool.name(), "debug");
  EXPECT_TRUE(open.pool.is_default());
  EXPECT_TRUE(open.pool.available());
  EXPECT_EQ(open.pool.state(), "up");
  EXPECT_EQ(open.pool.max_time_limit().seconds(), 86400);
  EXPECT_EQ(open.pool.default_time_limit().seconds(), 600);
  EXPECT_EQ(open.pool.max_nodes(), 0u);
  EXPECT_THAT(open.limits, IsEmpty());
  const Partition& limited = (*partitions)[1];
  EXPECT_FALSE(limited.pool.available());
  EXPECT_EQ(limited.pool.state(), "drain");
  EXPECT_FALSE(limited.pool.has_max_time_limit());
  EXPECT_FALSE(limited.pool.has_default_time_limit());
  EXPECT_EQ(limited.pool.max_nodes(), 2u);
  EXPECT_THAT(limited.limits,
              ElementsAre("AllowGroups=vis,ml", "AllowAccounts=vision", "DenyQos=low", "QoS=part",
                          "PreemptMode=REQUEUE", "OverSubscribe=EXCLUSIVE"));
}

TEST(ParseWholeQueueTest, AJobThatWaitsMayNameSeveralPartitions) {
  const auto jobs = ParseWholeQueue("debug,gpu\037PD\037ada\ndebug\037R\037bob\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT((*jobs)[0].partitions, ElementsAre("debug", "gpu"));
  EXPECT_TRUE((*jobs)[0].is_waiting);
  EXPECT_FALSE((*jobs)[1].is_waiting);
  EXPECT_EQ((*jobs)[1].user, "bob");
  EXPECT_FALSE(ParseWholeQueue("debug PD ada\n").ok());
}

TEST(TakesWorkTest, OnlyNodesThatStartJobs) {
  for (const char* state : {"idle", "mixed", "allocated", "idle+planned", "mixed+cloud",
                            "completing", "idle+powering_up"}) {
    EXPECT_TRUE(TakesWork(state)) << state;
  }
  for (const char* state : {"down", "down*", "idle*", "idle+drain", "mixed+drain", "error",
                            "unknown", "idle+maintenance", "idle+powered_down", "future", ""}) {
    EXPECT_FALSE(TakesWork(state)) << state;
  }
}

TEST(MakeDetailsTest, CountsWhatIsFreeOnNodesThatTakeWorkAndWhoWaits) {
  const v1::ClusterDetails details =
      MakeDetails(*ParsePartitions(kPartitions), *ParseNodes(kNodes),
                  *ParseWholeQueue("debug,gpu\037PD\037ada\ndebug\037R\037bob\n"
                                   "debug\037CG\037ada\nnosuch\037R\037ada\n"),
                  "ada");
  ASSERT_EQ(details.pools_size(), 2);
  const v1::PoolLoad& debug = details.pools(0);
  EXPECT_EQ(debug.pool(), "debug");
  EXPECT_EQ(debug.cpus(), 20u);
  EXPECT_EQ(debug.free_cpus(), 5u);
  EXPECT_THAT(debug.gpus(), UnorderedElementsAre(Pair("h100", 8)));
  EXPECT_THAT(debug.free_gpus(), UnorderedElementsAre(Pair("h100", 2)));
  EXPECT_EQ(debug.waiting_jobs(), 1u);
  EXPECT_EQ(debug.running_jobs(), 2u);
  EXPECT_EQ(debug.own_waiting_jobs(), 1u);
  EXPECT_EQ(debug.own_running_jobs(), 1u);
  EXPECT_EQ(details.pools(1).waiting_jobs(), 1u);
  EXPECT_EQ(details.pools(1).limits_size(), 6);
  ASSERT_EQ(details.nodes_size(), 3);
  EXPECT_EQ(details.nodes(0).name(), "cpu1") << "by name";
}

}  // namespace
}  // namespace muster::slurm
