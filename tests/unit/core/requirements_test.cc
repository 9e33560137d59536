#include "broker/core/requirements.h"

#include <functional>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using SpecEdit = std::function<void(v1::JobSpec*)>;

Requirements With(const SpecEdit& change) {
  v1::JobSpec spec = Spec();
  change(&spec);
  return RequirementsOf(spec);
}

TEST(Requirements, WhatPlacesNothingMakesNoDifference) {
  const Requirements plain = RequirementsOf(Spec());
  const SpecEdit changes[] = {
      [](v1::JobSpec* spec) { spec->set_name("other"); },
      [](v1::JobSpec* spec) { (*spec->mutable_env())["A"] = "1"; },
      [](v1::JobSpec* spec) { (*spec->mutable_labels())["team"] = "a"; },
      [](v1::JobSpec* spec) { spec->mutable_command()->set_script("date"); },
      [](v1::JobSpec* spec) { spec->set_priority(7); },
      [](v1::JobSpec* spec) { spec->mutable_retry()->set_max_runs(11); },
  };
  for (const SpecEdit& change : changes) {
    EXPECT_EQ(With(change), plain);
    EXPECT_EQ(absl::HashOf(With(change)), absl::HashOf(plain));
  }
}

TEST(Requirements, EachThingThatPlacesOrRetriesMakesADifference) {
  const SpecEdit changes[] = {
      [](v1::JobSpec*) {},
      [](v1::JobSpec* spec) { spec->set_project("other"); },
      [](v1::JobSpec* spec) { spec->set_nodes(2); },
      [](v1::JobSpec* spec) { spec->mutable_resources()->set_cpu_millis(2000); },
      [](v1::JobSpec* spec) { spec->mutable_resources()->set_memory_bytes(1 << 20); },
      [](v1::JobSpec* spec) { spec->mutable_resources()->add_gpus()->set_count_millis(1000); },
      [](v1::JobSpec* spec) { *spec = SpecWithGpus("h100", 1); },
      [](v1::JobSpec* spec) { spec->mutable_time_limit()->set_seconds(60); },
      [](v1::JobSpec* spec) { spec->mutable_placement()->add_clusters("a"); },
      [](v1::JobSpec* spec) { spec->mutable_placement()->set_pool("a"); },
      [](v1::JobSpec* spec) { spec->mutable_slurm()->set_account("a"); },
      [](v1::JobSpec* spec) { spec->mutable_slurm()->set_partition("a"); },
      [](v1::JobSpec* spec) { spec->mutable_kubernetes()->set_queue("q"); },
      [](v1::JobSpec* spec) { spec->mutable_kubernetes()->set_namespace_("a"); },
      [](v1::JobSpec* spec) { spec->add_uploads(); },
      [](v1::JobSpec* spec) { spec->add_roles()->set_nodes(1); },
      [](v1::JobSpec* spec) { spec->set_image("ubuntu"); },
      [](v1::JobSpec* spec) { spec->set_image("/images/x.sqsh"); },
      [](v1::JobSpec* spec) { spec->add_inputs()->set_uri("file:///data"); },
      [](v1::JobSpec* spec) { spec->set_results_directory("file:///data"); },
      [](v1::JobSpec* spec) { spec->mutable_retry()->set_max_runs(2); },
      [](v1::JobSpec* spec) { spec->mutable_retry()->set_on_preemption(true); },
      [](v1::JobSpec* spec) { spec->mutable_retry()->set_on_failure(true); },
      [](v1::JobSpec* spec) { spec->mutable_retry()->add_exit_codes(75); },
      [](v1::JobSpec* spec) { spec->mutable_retry()->mutable_backoff()->set_seconds(1); },
  };
  RequirementsList list;
  for (const SpecEdit& change : changes) list.Add(With(change));
  v1::JobSpec brings = Spec();
  brings.add_uploads();
  list.Add(RequirementsOf(brings, /*archive_bytes=*/9 << 20));
  EXPECT_THAT(list.Take(), SizeIs(std::size(changes) + 1));
}

TEST(Requirements, WhatIsOnlyWarnedOfMakesNoDifference) {
  EXPECT_EQ(With([](v1::JobSpec* spec) { spec->set_working_directory("/home/ann"); }),
            With([](v1::JobSpec*) {}));
  const auto with_data = [](const std::string& path) {
    return With([&](v1::JobSpec* spec) { spec->add_inputs()->set_uri("lustre://" + path); });
  };
  EXPECT_EQ(with_data("/data/sets/cats/1"), with_data("/data/sets/cats/2"));
  v1::JobSpec brings = Spec();
  brings.add_uploads();
  EXPECT_EQ(RequirementsOf(brings, 1000), RequirementsOf(brings)) << "every cluster takes as much";
}

TEST(Requirements, WhatAgentsFactsMayRefuseIsSharedByValue) {
  const auto on_disk = [](const std::string& disk) {
    return With([&](v1::JobSpec* spec) {
      (*spec->mutable_kubernetes()->mutable_node_selector())["disk"] = disk;
    });
  };
  EXPECT_EQ(on_disk("ssd"), on_disk("ssd"));
  EXPECT_NE(on_disk("ssd"), on_disk("hdd"));
  EXPECT_EQ(With([](v1::JobSpec*) {}).admission.needs(), nullptr);
}

TEST(Requirements, OneOfSeveralPartitionsWillDoAndOverridesThePool) {
  const Requirements made = With([](v1::JobSpec* spec) {
    spec->mutable_placement()->set_pool("nowhere");
    spec->mutable_slurm()->set_partition("small,large");
  });
  EXPECT_THAT(made.pools, ElementsAre("small", "large"));
  EXPECT_FALSE(made.pool_is_namespace);
}

TEST(Requirements, ImagesThatAreAlikeForPlacementAreOne) {
  EXPECT_EQ(With([](v1::JobSpec* spec) { spec->set_image("ubuntu"); }),
            With([](v1::JobSpec* spec) { spec->set_image("nvcr.io/nvidia/tao:5.0"); }));
}

TEST(Requirements, TheFieldOfAFileOfTheUsersMachineIsNamed) {
  const Requirements made = With([](v1::JobSpec* spec) {
    spec->add_inputs()->set_uri("lustre:///data");
    spec->add_inputs()->set_uri("file:///home/me/data");
  });
  EXPECT_EQ(made.machine_file_field, "inputs[1].uri");
}

TEST(Requirements, AListHasNoDoubles) {
  RequirementsList list;
  EXPECT_EQ(list.Add(RequirementsOf(Spec())), 0u);
  EXPECT_EQ(list.Add(RequirementsOf(SpecOn("a"))), 1u);
  EXPECT_EQ(list.Add(RequirementsOf(Spec())), 0u);
  EXPECT_THAT(list.Take(), ElementsAre(RequirementsOf(Spec()), RequirementsOf(SpecOn("a"))));
}

}  // namespace
}  // namespace muster::core
