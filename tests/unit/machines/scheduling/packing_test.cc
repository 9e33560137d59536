// Tests the placement of requests, and that nothing is given twice: Ledger.
#include "agents/machines/scheduling/ledger.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/machines/scheduling/test_hosts.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;
using Gpus = std::map<uint32_t, uint32_t>;

std::vector<ClusterHost> OneMachine() {
  return {Host("a", 8, {"a100", "a100", "h100", "h100", "h100"})};
}

// Returns two with four GPUs, and one with two.
std::vector<ClusterHost> ThreeHosts() {
  const std::vector<std::string> four(4, "h100");
  return {Host("a", 16, four), Host("b", 16, four), Host("c", 8, {"h100", "h100"})};
}

// Takes what the request needs, or nothing at all.
std::optional<Allocation> Allocate(Ledger* ledger, const Request& request) {
  std::optional<Allocation> allocation = ledger->room().Find(request);
  if (allocation.has_value()) ledger->Take(*allocation);
  return allocation;
}

NodeAllocation OnlyNode(Ledger* ledger, const Request& request) {
  const std::optional<Allocation> allocation = Allocate(ledger, request);
  EXPECT_TRUE(allocation.has_value()) << ledger->Shortage(request);
  if (!allocation.has_value()) return {};
  EXPECT_EQ(allocation->nodes.size(), 1u);
  return allocation->nodes.front();
}

TEST(Packing, GivesCoresUntilNoneIsFree) {
  Ledger ledger(OneMachine());
  EXPECT_TRUE(Allocate(&ledger, {.cores = 5, .memory_bytes = 10}).has_value());
  EXPECT_FALSE(Allocate(&ledger, {.cores = 4}).has_value());
  EXPECT_EQ(ledger.Shortage({.cores = 4}), "4 of 8 cores");
  EXPECT_TRUE(Allocate(&ledger, {.cores = 3}).has_value());
  EXPECT_FALSE(Allocate(&ledger, {.cores = 1}).has_value());
}

TEST(Packing, MemoryIsNeverOversubscribed) {
  Ledger ledger(OneMachine());
  EXPECT_TRUE(Allocate(&ledger, {.cores = 1, .memory_bytes = 600}).has_value());
  EXPECT_FALSE(Allocate(&ledger, {.cores = 1, .memory_bytes = 401}).has_value());
  EXPECT_TRUE(Allocate(&ledger, {.cores = 1, .memory_bytes = 400}).has_value());
}

TEST(Packing, WholeGpusAreGivenExactlyAndOnce) {
  Ledger ledger(OneMachine());
  const Request two = {.cores = 1, .gpu_type = "h100", .gpu_millis = 2000};
  const std::optional<Allocation> first = Allocate(&ledger, two);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->nodes[0].gpus, (Gpus{{2, 1000}, {3, 1000}}));
  EXPECT_FALSE(Allocate(&ledger, two).has_value());
  EXPECT_EQ(ledger.Shortage(two), "2 h100 GPUs");
  ledger.Release(*first);
  EXPECT_TRUE(Allocate(&ledger, {.cores = 1, .gpu_type = "h100", .gpu_millis = 3000}).has_value());
}

TEST(Packing, GpusOfAnyTypeAreAllOfOneAndSpareTheBiggerStock) {
  Ledger ledger(OneMachine());
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .gpu_millis = 2000}).gpus, (Gpus{{0, 1000}, {1, 1000}}));
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .gpu_millis = 3000}).gpus,
            (Gpus{{2, 1000}, {3, 1000}, {4, 1000}}));
  EXPECT_TRUE(ledger.Refusal({.cores = 1, .gpu_millis = 4000}).has_value());
}

TEST(Packing, AGangHasGpusOfOneTypeOnAllNodes) {
  Ledger ledger({Host("a", 4, {"a100"}), Host("b", 4, {"h100"}), Host("c", 4, {"h100"})});
  const std::optional<Allocation> gang =
      Allocate(&ledger, {.nodes = 2, .cores = 1, .gpu_millis = 1000});
  ASSERT_TRUE(gang.has_value());
  EXPECT_EQ(gang->nodes[0].host, 1u);
  EXPECT_EQ(gang->nodes[1].host, 2u);
  EXPECT_FALSE(Allocate(&ledger, {.nodes = 2, .cores = 1, .gpu_millis = 1000}).has_value());
}

TEST(Packing, AGangHasAllOfItsNodesEachOnAHostOfItsOwnOrNone) {
  Ledger ledger(ThreeHosts());
  const Request gang = {.nodes = 2, .cores = 1, .gpu_type = "h100", .gpu_millis = 4000};
  const Allocation one = *Allocate(&ledger, {.cores = 1, .gpu_type = "h100", .gpu_millis = 3000});
  EXPECT_FALSE(Allocate(&ledger, gang).has_value());
  EXPECT_EQ(ledger.Shortage(gang), "2 hosts with 4 h100 GPUs");
  EXPECT_EQ(ledger.room().FreeCores(1), 16u) << "a gang that does not fit has taken something";
  ledger.Release(one);
  const Allocation both = *Allocate(&ledger, gang);
  EXPECT_EQ(both.nodes[0].host, 0u);
  EXPECT_EQ(both.nodes[1].host, 1u);
}

TEST(Packing, TwoHalvesShareOneDevice) {
  Ledger ledger(OneMachine());
  const Request half = {.cores = 1, .gpu_type = "h100", .gpu_millis = 500};
  EXPECT_EQ(OnlyNode(&ledger, half).gpus, (Gpus{{2, 500}}));
  EXPECT_EQ(OnlyNode(&ledger, half).gpus, (Gpus{{2, 500}}));
  EXPECT_EQ(OnlyNode(&ledger, half).gpus, (Gpus{{3, 500}}));
}

TEST(Packing, AShareNeverStraddlesDevices) {
  Ledger ledger({Host("a", 8, {"h100", "h100"})});
  const Request much = {.cores = 1, .gpu_millis = 600};
  OnlyNode(&ledger, much);
  OnlyNode(&ledger, much);
  EXPECT_FALSE(Allocate(&ledger, much).has_value()) << "400 and 400 are free, on two devices";
  EXPECT_EQ(ledger.Shortage(much), "0.6 of a GPU");
}

TEST(Packing, AShareGoesToTheSharedDeviceThatHasTheLeastLeft) {
  Ledger ledger({Host("a", 8, {"h100", "h100", "h100"})});
  EXPECT_EQ(OnlyNode(&ledger, {.gpu_millis = 500}).gpus, (Gpus{{0, 500}}));
  EXPECT_EQ(OnlyNode(&ledger, {.gpu_millis = 700}).gpus, (Gpus{{1, 700}}));
  EXPECT_EQ(OnlyNode(&ledger, {.gpu_millis = 300}).gpus, (Gpus{{1, 300}}));
  EXPECT_EQ(OnlyNode(&ledger, {.gpu_millis = 300}).gpus, (Gpus{{0, 300}}));
}

TEST(Packing, AShareOfAnyTypeBreaksNoWholeDeviceWhileAnotherIsShared) {
  Ledger ledger({Host("a", 8, {"a100", "a100"}), Host("b", 8, {"h100", "h100", "h100"})});
  OnlyNode(&ledger, {.gpu_type = "h100", .gpu_millis = 250});
  EXPECT_EQ(OnlyNode(&ledger, {.gpu_millis = 250}).host, 1u);
}

TEST(Packing, ASharedDeviceIsNoWholeOneUntilTheLastShareIsBack) {
  Ledger ledger({Host("a", 8, {"h100"})});
  const Allocation first = *Allocate(&ledger, {.gpu_millis = 1});
  const Allocation second = *Allocate(&ledger, {.gpu_millis = 999});
  ledger.Release(first);
  EXPECT_FALSE(Allocate(&ledger, {.gpu_millis = 1000}).has_value());
  ledger.Release(second);
  EXPECT_TRUE(Allocate(&ledger, {.gpu_millis = 1000}).has_value());
}

TEST(Packing, WholeGpusGoToTheHostWithTheFewestFree) {
  Ledger ledger(ThreeHosts());
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .gpu_millis = 1000}).host, 2u);
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .gpu_millis = 2000}).host, 0u);
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .gpu_millis = 2000}).host, 0u);
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .gpu_millis = 4000}).host, 1u);
}

TEST(Packing, RunsWithoutGpusStayAwayFromHostsWithGpus) {
  Ledger ledger({Host("a", 8, {"h100"}), Host("b", 8, {}), Host("c", 4, {})});
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 2}).host, 2u) << "the smaller one of those without GPUs";
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 4}).host, 1u);
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 8}).host, 0u);
}

TEST(Packing, ACordonedHostKeepsWhatItHasAndGetsNothing) {
  Ledger ledger(ThreeHosts());
  const Request four = {.cores = 1, .gpu_millis = 4000};
  const Allocation first = *Allocate(&ledger, four);
  ledger.SetState(1, HostState::kCordoned);
  EXPECT_FALSE(Allocate(&ledger, four).has_value());
  EXPECT_TRUE(ledger.CouldFit(four)) << "host a would do, once it is free";
  EXPECT_FALSE(ledger.Refusal(four).has_value());
  ledger.SetState(0, HostState::kDown);
  EXPECT_FALSE(ledger.CouldFit(four));
  EXPECT_EQ(ledger.Shortage(four), "hosts that take no runs now (a, b)");
  ledger.Release(first);
  EXPECT_FALSE(Allocate(&ledger, four).has_value());
  ledger.SetState(0, HostState::kUp);
  EXPECT_EQ(OnlyNode(&ledger, four).host, 0u);
}

TEST(Packing, ARunGoesToNoHostThatItExcludes) {
  Ledger ledger({Host("a", 8, {}), Host("b", 8, {}), Host("c", 4, {})});
  EXPECT_EQ(OnlyNode(&ledger, {.cores = 1, .excluded_hosts = {"b", "c"}}).host, 0u);
  EXPECT_FALSE(
      Allocate(&ledger, {.nodes = 2, .cores = 1, .excluded_hosts = {"b", "c"}}).has_value());
  const auto misfit = ledger.Refusal({.nodes = 2, .cores = 1, .excluded_hosts = {"b", "c"}});
  ASSERT_TRUE(misfit.has_value());
  EXPECT_THAT(misfit->why, HasSubstr("without b, c, where earlier runs of the job failed"));
}

TEST(Packing, RestoresMoreThanAShrunkenMachineHas) {
  Ledger ledger({Host("a", 2, {}, 10)});
  const Allocation big = {
      .nodes = {{.host = 0, .cores = 4, .memory_bytes = 20, .gpus = {{7, 1000}}}}};
  ledger.Take(big);
  EXPECT_FALSE(Allocate(&ledger, {.cores = 1}).has_value());
  ledger.Release(big);
  EXPECT_TRUE(Allocate(&ledger, {.cores = 2, .memory_bytes = 10}).has_value());
}

struct Refused {
  Request request;
  const char* why;
  contract::FailureCause cause = contract::FailureCause::kNone;
};

TEST(Refusal, SaysWhatTheMachineDoesNotHave) {
  const Ledger ledger(OneMachine());
  const std::vector<Refused> cases = {
      {{.cores = 9}, "9 cores were asked for; the machine has 8"},
      {{.cores = 1, .memory_bytes = 1001}, "of memory were asked for; the machine has"},
      {{.cores = 1, .gpu_type = "v100", .gpu_millis = 2000},
       "2 v100 GPUs were asked for; the machine has 2 a100, 3 h100"},
      {{.cores = 1, .gpu_type = "v100", .gpu_millis = 500},
       "0.5 of a v100 GPU were asked for; the machine has 2 a100, 3 h100"},
      {{.nodes = 2, .cores = 1}, "2 nodes were asked for; this cluster is one machine"},
      {{.cores = 1, .gpu_millis = 1500},
       "resources.gpus[0].count_millis: 1500 is neither a share of one GPU nor whole GPUs",
       contract::FailureCause::kShareOfGpus},
  };
  for (const Refused& refused : cases) {
    const std::optional<Misfit> misfit = ledger.Refusal(refused.request);
    ASSERT_TRUE(misfit.has_value()) << refused.why;
    EXPECT_THAT(misfit->why, HasSubstr(refused.why));
    EXPECT_EQ(misfit->cause, refused.cause) << refused.why;
  }
  EXPECT_FALSE(
      ledger.Refusal({.cores = 8, .memory_bytes = 1000, .gpu_type = "h100", .gpu_millis = 3000})
          .has_value());
}

TEST(Refusal, SaysWhatNoHostOfAClusterHas) {
  std::vector<ClusterHost> hosts = ThreeHosts();
  hosts.push_back(Host("d", 64, {"a100"}));
  hosts[3].state = HostState::kDown;
  const Ledger ledger(hosts);
  const std::vector<Refused> cases = {
      {{.nodes = 5, .cores = 1}, "5 nodes were asked for; this cluster has 4 hosts"},
      {{.cores = 65}, "65 cores were asked for; the largest host has 64"},
      {{.cores = 1, .gpu_millis = 5000},
       "5 GPUs were asked for; one host has at most 1 a100, 4 h100"},
      {{.cores = 1, .gpu_type = "v100", .gpu_millis = 1000},
       "1 v100 GPU were asked for; hosts have 1 a100, 4 h100"},
      {{.nodes = 3, .cores = 16, .gpu_type = "h100", .gpu_millis = 1000},
       "3 nodes were asked for; 2 hosts have all that one needs"},
  };
  for (const Refused& refused : cases) {
    const std::optional<Misfit> misfit = ledger.Refusal(refused.request);
    ASSERT_TRUE(misfit.has_value()) << refused.why;
    EXPECT_THAT(misfit->why, HasSubstr(refused.why));
    EXPECT_EQ(misfit->cause, refused.cause) << refused.why;
  }
  EXPECT_FALSE(ledger.Refusal({.cores = 64}).has_value()) << "a host that is down comes back";
}

}  // namespace
}  // namespace muster::machines
