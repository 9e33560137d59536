#include "contract/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "contract/errors.h"
#include "google/protobuf/util/message_differencer.h"

namespace muster::contract {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;
using Edit = std::function<void(v1::JobSpec*)>;

v1::JobSpec MinimalSpec() {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("/usr/bin/python3");
  return spec;
}

v1::JobSpec Edited(const Edit& edit) {
  v1::JobSpec spec = MinimalSpec();
  edit(&spec);
  return spec;
}

std::vector<std::string> BadFields(const absl::Status& status) {
  std::vector<std::string> fields;
  const auto bad_request = GetBadRequest(status);
  if (!bad_request) return fields;
  for (const auto& violation : bad_request->field_violations()) fields.push_back(violation.field());
  return fields;
}

TEST(NormalizeJobSpec, FillsInTheDocumentedDefaults) {
  const auto spec = NormalizeJobSpec(MinimalSpec());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name(), "python3");
  EXPECT_EQ(spec->project(), "default");
  EXPECT_EQ(spec->nodes(), 1u);
  EXPECT_EQ(spec->resources().cpu_millis(), 0u) << "the cluster knows";
  EXPECT_EQ(spec->resources().memory_bytes(), 0u);
  EXPECT_FALSE(spec->has_slurm());
  EXPECT_FALSE(spec->has_time_limit());
}

TEST(NormalizeJobSpec, TakesZeroGpusWithoutATypeForNone) {
  const auto spec = NormalizeJobSpec(
      Edited([](v1::JobSpec* s) { s->mutable_resources()->add_gpus()->set_count_millis(0); }));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->resources().gpus_size(), 1) << "not the same as a job that leaves it open";
}

TEST(NormalizeJobSpec, SetsTasksPerNodeOnlyWhereThereIsASlurmSection) {
  const auto spec =
      NormalizeJobSpec(Edited([](v1::JobSpec* s) { s->mutable_slurm()->set_account("a"); }));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->slurm().tasks_per_node(), 1u);
}

TEST(NormalizeJobSpec, NamesAJobAfterItsCommand) {
  const std::map<std::string, std::string> scripts = {
      {"#!/bin/bash\n\n# a comment\n  /opt/train.py --x\n", "train.py"},
      {"echo hi", "echo"},
      {"if [ -f data ]; then\n  python train.py\nfi", "python"},
      {"# nothing but comments", "job"},
      {"\"$X\"/\x1b[1m\n", "1m"},
  };
  for (const auto& [script, name] : scripts) {
    v1::JobSpec spec;
    spec.mutable_command()->set_script(script);
    const auto normalized = NormalizeJobSpec(spec);
    ASSERT_TRUE(normalized.ok()) << normalized.status();
    EXPECT_EQ(normalized->name(), name) << script;
  }
}

struct BadCase {
  const char* field;
  Edit edit;
};

std::string WithNul() { return std::string("a\0b", 3); }

// Lists names, sizes and limits.
std::vector<BadCase> BadSizes() {
  return {
      {"name", [](auto* s) { s->set_name(std::string(kMaxNameBytes + 1, 'n')); }},
      {"name", [](auto* s) { s->set_name("a\nb"); }},
      {"name", [](auto* s) { s->set_name("\xff"); }},
      {"project", [](auto* s) { s->set_project("Vision"); }},
      {"project", [](auto* s) { s->set_project("-a"); }},
      {"project", [](auto* s) { s->set_project(std::string(64, 'a')); }},
      {"nodes", [](auto* s) { s->set_nodes(kMaxNodes + 1); }},
      {"priority", [](auto* s) { s->set_priority(1001); }},
      {"priority", [](auto* s) { s->set_priority(-1001); }},
      {"resources.cpu_millis", [](auto* s) { s->mutable_resources()->set_cpu_millis(10'000'001); }},
      {"resources.memory_bytes",
       [](auto* s) { s->mutable_resources()->set_memory_bytes((uint64_t{1} << 50) + 1); }},
      {"resources.memory_bytes", [](auto* s) { s->mutable_resources()->set_memory_bytes(512); }},
      {"resources.gpus[0].count_millis",
       [](auto* s) { s->mutable_resources()->add_gpus()->set_type("H100"); }},
      {"resources.gpus[0].count_millis",
       [](auto* s) { s->mutable_resources()->add_gpus()->set_count_millis(1'001'000); }},
      {"resources.gpus[0].count_millis",
       [](auto* s) { s->mutable_resources()->add_gpus()->set_count_millis(1'500); }},
      {"resources.gpus[0].type",
       [](auto* s) {
         auto* gpus = s->mutable_resources()->add_gpus();
         gpus->set_type("-1");
         gpus->set_count_millis(1000);
       }},
      {"resources.gpus[0].type",
       [](auto* s) {
         auto* gpus = s->mutable_resources()->add_gpus();
         gpus->set_type("H100:8");
         gpus->set_count_millis(1000);
       }},
      {"time_limit", [](auto* s) { s->mutable_time_limit(); }},
      {"time_limit", [](auto* s) { s->mutable_time_limit()->set_seconds(-5); }},
      {"time_limit",
       [](auto* s) { s->mutable_time_limit()->set_seconds(int64_t{36500} * 86400 + 1); }},
      {"time_limit",
       [](auto* s) {
         s->mutable_time_limit()->set_seconds(int64_t{36500} * 86400);
         s->mutable_time_limit()->set_nanos(1);
       }},
      {"time_limit",
       [](auto* s) {
         s->mutable_time_limit()->set_seconds(5);
         s->mutable_time_limit()->set_nanos(-1);
       }},
  };
}

// Lists specs with a bad program, or bad variables of it.
std::vector<BadCase> BadPrograms() {
  return {
      {"setup", [](auto* s) { s->set_setup(WithNul()); }},
      {"command", [](auto* s) { s->clear_command(); }},
      {"command.argv.args", [](auto* s) { s->mutable_command()->mutable_argv()->clear_args(); }},
      {"command.argv.args", [](auto* s) { s->mutable_command()->mutable_argv()->set_args(0, ""); }},
      {"command.argv.args",
       [](auto* s) {
         for (size_t i = 0; i < kMaxArgs; ++i) s->mutable_command()->mutable_argv()->add_args("");
       }},
      {"command.argv.args[1]",
       [](auto* s) {
         s->mutable_command()->mutable_argv()->add_args(std::string(kMaxArgBytes + 1, 'x'));
       }},
      {"command.argv.args[1]",
       [](auto* s) { s->mutable_command()->mutable_argv()->add_args(WithNul()); }},
      {"command.script", [](auto* s) { s->mutable_command()->set_script(" \n"); }},
      {"command.script", [](auto* s) { s->mutable_command()->set_script(WithNul()); }},
      {"command.script_arguments",
       [](auto* s) { s->mutable_command()->add_script_arguments("of no script"); }},
      {"command.script_arguments",
       [](auto* s) {
         s->mutable_command()->set_script("true");
         for (size_t i = 0; i <= kMaxArgs; ++i) s->mutable_command()->add_script_arguments("");
       }},
      {"command.script_arguments[0]",
       [](auto* s) {
         s->mutable_command()->set_script("true");
         s->mutable_command()->add_script_arguments(WithNul());
       }},
      {"env",
       [](auto* s) {
         for (size_t i = 0; i <= kMaxEnvVars; ++i) {
           (*s->mutable_env())["V" + std::to_string(i)] = "";
         }
       }},
      {"env[\"1X\"]", [](auto* s) { (*s->mutable_env())["1X"] = ""; }},
      {"env[\"A-B\"]", [](auto* s) { (*s->mutable_env())["A-B"] = ""; }},
      {"env[\"\"]", [](auto* s) { (*s->mutable_env())[""] = ""; }},
      {"env[\"LD_PRELOAD\"]", [](auto* s) { (*s->mutable_env())["LD_PRELOAD"] = "x"; }},
      {"env[\"SLURM_JOB_ID\"]", [](auto* s) { (*s->mutable_env())["SLURM_JOB_ID"] = "x"; }},
      {"env[\"MUSTER_X\"]", [](auto* s) { (*s->mutable_env())["MUSTER_X"] = "x"; }},
      {"env[\"X\"]", [](auto* s) { (*s->mutable_env())["X"] = WithNul(); }},
      {"env[\"X\"]",
       [](auto* s) { (*s->mutable_env())["X"] = std::string(kMaxArgBytes - 1, 'x'); }},
  };
}

// Lists specs with a bad place where the program starts, or bad files there.
std::vector<BadCase> BadStarts() {
  return {
      {"working_directory", [](auto* s) { s->set_working_directory("home"); }},
      {"working_directory", [](auto* s) { s->set_working_directory("/a\nb"); }},
      {"working_directory",
       [](auto* s) { s->set_working_directory("/" + std::string(4095, 'x')); }},
      {"working_directory",
       [](auto* s) {
         s->set_working_directory("/data");
         s->add_uploads()->set_tree_sha256(std::string(64, 'a'));
       }},
      {"uploads[0].tree_sha256", [](auto* s) { s->add_uploads()->set_tree_sha256("abc"); }},
      {"uploads[0].path",
       [](auto* s) {
         s->add_uploads()->set_tree_sha256(std::string(64, 'a'));
         s->mutable_uploads(0)->set_path("/etc");
       }},
      {"uploads[0].path",
       [](auto* s) {
         s->add_uploads()->set_tree_sha256(std::string(64, 'a'));
         s->mutable_uploads(0)->set_path("a/../..");
       }},
      {"uploads",
       [](auto* s) {
         for (int i = 0; i < 65; ++i) s->add_uploads()->set_tree_sha256(std::string(64, 'a'));
       }},
      {"setup", [](auto* s) { s->set_setup(std::string(kMaxSpecBytes, 'x')); }},
      {"command",
       [](auto* s) { s->mutable_command()->set_script(std::string(kMaxSpecBytes, 'x')); }},
  };
}

// Lists labels, and where it may run.
std::vector<BadCase> BadPlaces() {
  return {
      {"labels",
       [](auto* s) {
         for (size_t i = 0; i <= kMaxLabels; ++i) (*s->mutable_labels())[std::to_string(i)] = "";
       }},
      {"labels[\"Team\"]", [](auto* s) { (*s->mutable_labels())["Team"] = "x"; }},
      {"labels[\"team\"]", [](auto* s) { (*s->mutable_labels())["team"] = std::string(64, 'x'); }},
      {"labels[\"team\"]", [](auto* s) { (*s->mutable_labels())["team"] = "a\tb"; }},
      {"placement.clusters[0]", [](auto* s) { s->mutable_placement()->add_clusters("Bad!"); }},
      {"placement.clusters",
       [](auto* s) {
         for (int i = 0; i < 101; ++i) s->mutable_placement()->add_clusters("a");
       }},
      {"placement.pool", [](auto* s) { s->mutable_placement()->set_pool("-x"); }},
      {"placement.pool", [](auto* s) { s->mutable_placement()->set_pool("a,b"); }},
      {"slurm.partition", [](auto* s) { s->mutable_slurm()->set_partition("a b"); }},
      {"slurm.account", [](auto* s) { s->mutable_slurm()->set_account("a\n#SBATCH --uid=0"); }},
      {"slurm.qos", [](auto* s) { s->mutable_slurm()->set_qos("--wrap=ls"); }},
      {"slurm.reservation", [](auto* s) { s->mutable_slurm()->set_reservation("\"r"); }},
      {"slurm.constraint", [](auto* s) { s->mutable_slurm()->set_constraint("a\x7f"); }},
      {"slurm.nodelist", [](auto* s) { s->mutable_slurm()->set_nodelist("n[1-2]'"); }},
      {"slurm.exclude", [](auto* s) { s->mutable_slurm()->set_exclude(std::string(1025, 'x')); }},
      {"slurm.comment", [](auto* s) { s->mutable_slurm()->set_comment("a\rb"); }},
      {"slurm.tasks_per_node", [](auto* s) { s->mutable_slurm()->set_tasks_per_node(10001); }},
      {"inputs[0].uri", [](auto* s) { s->add_inputs(); }},
      {"inputs[0].uri", [](auto* s) { s->add_inputs()->set_uri("data/train"); }},
      {"inputs[0].uri", [](auto* s) { s->add_inputs()->set_uri("s3://b/k"); }},
      {"inputs[0].uri", [](auto* s) { s->add_inputs()->set_uri("lustre:///a/../b"); }},
      {"inputs[0].path",
       [](auto* s) {
         s->add_inputs()->set_uri("/data");
         s->mutable_inputs(0)->set_path("/in");
       }},
      {"inputs",
       [](auto* s) {
         for (size_t i = 0; i <= kMaxInputs; ++i) s->add_inputs()->set_uri("/data");
       }},
      {"results_directory", [](auto* s) { s->set_results_directory("out"); }},
  };
}

TEST(NormalizeJobSpec, NamesTheOneBadField) {
  for (const auto& cases : {BadSizes(), BadPrograms(), BadStarts(), BadPlaces()}) {
    for (const BadCase& bad : cases) {
      const absl::Status status = NormalizeJobSpec(Edited(bad.edit)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.field;
      EXPECT_THAT(BadFields(status), testing::Each(bad.field)) << status;
      EXPECT_FALSE(BadFields(status).empty()) << bad.field;
    }
  }
}

TEST(NormalizeJobSpec, CollectsAllBadFields) {
  v1::JobSpec spec = MinimalSpec();
  spec.set_nodes(kMaxNodes + 1);
  spec.set_priority(5000);
  spec.set_project("No");
  const absl::Status status = NormalizeJobSpec(spec).status();
  EXPECT_THAT(BadFields(status), testing::UnorderedElementsAre("nodes", "priority", "project"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"No\""));
}

TEST(NormalizeJobSpec, TakesEachLimitItself) {
  const std::vector<Edit> good = {
      [](auto* s) { s->set_name(std::string(kMaxNameBytes, 'n')); },
      [](auto* s) { s->set_project(std::string(63, 'p')); },
      [](auto* s) { s->set_nodes(kMaxNodes); },
      [](auto* s) { s->set_priority(-1000); },
      [](auto* s) { s->mutable_time_limit()->set_seconds(1); },
      [](auto* s) { s->mutable_time_limit()->set_seconds(int64_t{36500} * 86400); },
      [](auto* s) { s->mutable_resources()->set_memory_bytes(uint64_t{1} << 50); },
      [](auto* s) { (*s->mutable_env())["X"] = std::string(kMaxArgBytes - 2, 'x'); },
      [](auto* s) {
        s->mutable_command()->mutable_argv()->add_args(std::string(kMaxArgBytes, 'x'));
      },
      [](auto* s) { (*s->mutable_labels())[std::string(63, 'k')] = std::string(63, 'v'); },
      [](auto* s) { s->mutable_slurm()->set_constraint("[rack1*2&rack2*4]|(a&!b)"); },
      [](auto* s) { s->mutable_slurm()->set_nodelist("n[01-04,7],gpu-1"); },
      [](auto* s) { s->mutable_slurm()->set_comment("it's \"fine\" — so far"); },
      [](auto* s) { s->mutable_slurm()->set_partition("a,b"); },
  };
  for (size_t i = 0; i < good.size(); ++i) {
    const auto spec = NormalizeJobSpec(Edited(good[i]));
    EXPECT_TRUE(spec.ok()) << "case " << i << ": " << spec.status();
  }
}

TEST(NormalizeJobSpec, TakesAnImageAndItsMounts) {
  v1::JobSpec spec = Edited([](auto* s) {
    s->set_image("nvcr.io/nvidia/tao:5.0");
    s->add_mounts()->set_source("/data");
    s->mutable_mounts(0)->set_target("/in");
  });
  EXPECT_TRUE(NormalizeJobSpec(spec).ok());
  spec.set_image("/images/x.sqsh");
  EXPECT_TRUE(NormalizeJobSpec(spec).ok());
}

TEST(NormalizeJobSpec, RefusesAnImageOrAMountThatNobodyCanMean) {
  const auto mounted = [](auto* s, const char* source, const char* target) {
    s->set_image("ubuntu");
    s->add_mounts()->set_source(source);
    s->mutable_mounts(0)->set_target(target);
  };
  const std::vector<BadCase> cases = {
      {"image", [](auto* s) { s->set_image("UPPER/Case:1"); }},
      {"image", [](auto* s) { s->set_image("./x.sqsh"); }},
      {"mounts", [](auto* s) { s->add_mounts()->set_source("/without/image"); }},
      {"mounts[0].source", [&](auto* s) { mounted(s, "data", "/in"); }},
      {"mounts[0].source", [&](auto* s) { mounted(s, "", "/in"); }},
      {"mounts[0].target", [&](auto* s) { mounted(s, "/data", "in\n"); }},
      {"mounts",
       [&](auto* s) {
         for (int i = 0; i < 65; ++i) mounted(s, "/data", "/in");
       }},
  };
  for (const BadCase& c : cases) {
    const auto spec = NormalizeJobSpec(Edited(c.edit));
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << c.field;
    const auto bad = GetBadRequest(spec.status());
    ASSERT_TRUE(bad.has_value()) << c.field;
    EXPECT_EQ(bad->field_violations(0).field(), c.field) << bad->ShortDebugString();
  }
}

TEST(NormalizeJobSpec, RefusesGpusOfTwoTypesAndSaysWhatToDoInstead) {
  const v1::JobSpec spec = Edited([](auto* s) {
    s->mutable_resources()->add_gpus()->set_count_millis(1000);
    s->mutable_resources()->add_gpus()->set_count_millis(1000);
  });
  const absl::Status status = NormalizeJobSpec(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto bad = GetBadRequest(status);
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->field_violations(0).field(), "resources.gpus[1]");
  EXPECT_THAT(std::string(status.message()), HasSubstr("submit several jobs"));
}

TEST(NormalizeJobSpec, KnowsEachFieldThatItsMessageHas) {
  // A field added to JobSpec needs a rule: a limit, or a refusal. Then this number follows.
  EXPECT_EQ(v1::JobSpec::descriptor()->field_count(), 26);
  EXPECT_EQ(v1::Resources::descriptor()->field_count(), 3);
  EXPECT_EQ(v1::Placement::descriptor()->field_count(), 2);
  EXPECT_EQ(v1::SlurmOptions::descriptor()->field_count(), 22);
}

TEST(NormalizeJobSpec, RefusesFieldsOfANewerClientAtAnyDepth) {
  v1::JobSpec spec = MinimalSpec();
  spec.GetReflection()->MutableUnknownFields(&spec)->AddVarint(99, 1);
  auto* gpus = spec.mutable_resources()->add_gpus();
  gpus->set_count_millis(1000);
  gpus->GetReflection()->MutableUnknownFields(gpus)->AddVarint(9, 1);
  v1::JobSpec received;
  ASSERT_TRUE(received.ParseFromString(spec.SerializeAsString()));
  const absl::Status status = NormalizeJobSpec(received).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "99,resources.gpus.9");
}

RC_GTEST_PROP(NormalizeJobSpec, IsIdempotent, ()) {
  v1::JobSpec spec;
  spec.set_name(*rc::gen::arbitrary<std::string>());
  spec.set_nodes(*rc::gen::inRange<uint32_t>(0, 3));
  spec.set_priority(*rc::gen::inRange<int>(-1100, 1100));
  spec.mutable_resources()->set_cpu_millis(*rc::gen::inRange<uint64_t>(0, 3));
  if (*rc::gen::arbitrary<bool>()) spec.mutable_slurm()->set_exclusive(true);
  if (*rc::gen::arbitrary<bool>()) {
    spec.mutable_command()->set_script(*rc::gen::arbitrary<std::string>());
  } else {
    spec.mutable_command()->mutable_argv()->add_args(*rc::gen::arbitrary<std::string>());
  }
  const auto once = NormalizeJobSpec(spec);
  if (!once.ok()) return;
  const auto twice = NormalizeJobSpec(*once);
  RC_ASSERT(twice.ok());
  RC_ASSERT(MessageDifferencer::Equals(*once, *twice));
}

TEST(ClusterName, IsADnsLabel) {
  for (const char* name : {"a", "gpu-1", "1", "a-b-c"}) {
    EXPECT_TRUE(ValidateClusterName(name).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("a-"), std::string("A"), std::string("a_b"),
        std::string("a.b"), std::string(64, 'a'), std::string("a/b")}) {
    EXPECT_FALSE(ValidateClusterName(name).ok()) << name;
  }
}

TEST(RequestId, IsShortAndPrintable) {
  EXPECT_TRUE(ValidateRequestId("").ok());
  EXPECT_TRUE(ValidateRequestId("f81d4fae-7dec-11d0-a765-00a0c91e6bf6").ok());
  EXPECT_TRUE(ValidateRequestId(std::string(kMaxRequestIdBytes, 'x')).ok());
  EXPECT_FALSE(ValidateRequestId(std::string(kMaxRequestIdBytes + 1, 'x')).ok());
  EXPECT_FALSE(ValidateRequestId("a\nb").ok());
  EXPECT_FALSE(ValidateRequestId("\xff").ok());
}

}  // namespace
}  // namespace muster::contract
