#include "contract/spec_mask.h"

#include <gmock/gmock.h>

#include <initializer_list>
#include <string>

#include "contract/errors.h"
#include "gtest/gtest.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<SpecMask> MaskOf(std::initializer_list<const char*> paths) {
  google::protobuf::FieldMask mask;
  for (const char* path : paths) mask.add_paths(path);
  return SpecMask::Parse(mask);
}

v1::JobSpec WholeSpec() {
  v1::JobSpec spec;
  spec.set_name("train");
  spec.set_nodes(3);
  spec.mutable_command()->set_script("echo");
  spec.mutable_slurm()->set_partition("gpu");
  spec.mutable_slurm()->set_account("ann");
  spec.mutable_slurm()->mutable_batch_script()->set_output("out");
  (*spec.mutable_env())["A"] = "1";
  (*spec.mutable_env())["B"] = "2";
  return spec;
}

v1::JobSpec Cut(std::initializer_list<const char*> paths, const v1::JobSpec& spec) {
  const auto mask = MaskOf(paths);
  EXPECT_TRUE(mask.ok()) << mask.status();
  v1::JobSpec cut;
  const auto bytes = mask->Cut(spec.SerializeAsString());
  EXPECT_TRUE(bytes.has_value());
  EXPECT_TRUE(cut.ParseFromString(bytes.value_or("")));
  return cut;
}

TEST(SpecMaskTest, OnlyTheNamedFieldsStay) {
  v1::JobSpec expected;
  expected.set_nodes(3);
  expected.mutable_slurm()->set_partition("gpu");
  (*expected.mutable_env())["A"] = "1";
  (*expected.mutable_env())["B"] = "2";
  EXPECT_EQ(Cut({"nodes", "slurm.partition", "env"}, WholeSpec()).ShortDebugString(),
            expected.ShortDebugString());
}

TEST(SpecMaskTest, AMessageOfWhichNothingIsTakenIsStillThere) {
  const v1::JobSpec cut = Cut({"slurm.batch_script.append"}, WholeSpec());
  EXPECT_TRUE(cut.slurm().has_batch_script());
  EXPECT_EQ(cut.slurm().batch_script().output(), "");
  EXPECT_FALSE(Cut({"kubernetes"}, WholeSpec()).has_kubernetes());
}

TEST(SpecMaskTest, OneKeyOfAMapCanBeTaken) {
  const v1::JobSpec cut = Cut({"env.B", "env.C.D", "nodes"}, WholeSpec());
  EXPECT_EQ(cut.env_size(), 1);
  EXPECT_EQ(cut.env().at("B"), "2");
  EXPECT_EQ(cut.nodes(), 3u);
  EXPECT_EQ(Cut({"env.B", "env"}, WholeSpec()).env_size(), 2);
  EXPECT_EQ(Cut({"env", "env.B"}, WholeSpec()).env_size(), 2);
}

TEST(SpecMaskTest, AWholeMessageWinsOverItsParts) {
  for (const auto& paths : {std::initializer_list<const char*>{"slurm.partition", "slurm"},
                            std::initializer_list<const char*>{"slurm", "slurm.partition"}}) {
    const v1::JobSpec cut = Cut(paths, WholeSpec());
    EXPECT_EQ(cut.slurm().ShortDebugString(), WholeSpec().slurm().ShortDebugString());
    EXPECT_EQ(cut.nodes(), 0u);
  }
}

TEST(SpecMaskTest, NoPathTakesNothing) { EXPECT_EQ(Cut({}, WholeSpec()).ByteSizeLong(), 0u); }

TEST(SpecMaskTest, AWrongPathIsNamed) {
  for (const char* path : {"node", "slurm.nothing", "nodes.x", "env.", "inputs.uri", "", "slurm.",
                           ".slurm", "Nodes", "*"}) {
    const auto mask = MaskOf({"nodes", path});
    ASSERT_EQ(mask.status().code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(std::string(mask.status().message()), HasSubstr("\"" + std::string(path) + "\""));
    EXPECT_EQ(GetBadRequest(mask.status())->field_violations(0).field(), "spec_mask");
  }
}

TEST(SpecMaskTest, ThereIsABound) {
  google::protobuf::FieldMask mask;
  for (int i = 0; i < kMaxMaskPaths; ++i) mask.add_paths("nodes");
  EXPECT_TRUE(SpecMask::Parse(mask).ok());
  mask.add_paths("nodes");
  EXPECT_FALSE(SpecMask::Parse(mask).ok());
}

TEST(SpecMaskTest, BytesThatAreNoMessageAreNoPart) {
  const auto mask = MaskOf({"nodes"});
  const std::string bytes = WholeSpec().SerializeAsString();
  EXPECT_FALSE(mask->Cut(bytes.substr(0, bytes.size() - 1)).has_value());
  EXPECT_FALSE(mask->Cut("\xff").has_value());
}

}  // namespace
}  // namespace muster::contract
