#include "contract/kubernetes_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "contract/errors.h"
#include "contract/kubernetes_names.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

v1::JobSpec WithOptions(const std::function<void(v1::KubernetesOptions*)>& change) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script("true");
  change(spec.mutable_kubernetes());
  return spec;
}

// Returns the fields that are refused.
std::vector<std::string> Refused(const v1::JobSpec& spec) {
  const absl::Status status = NormalizeJobSpec(spec).status();
  std::vector<std::string> fields;
  const auto bad = GetBadRequest(status);
  if (!bad.has_value()) return fields;
  for (const auto& violation : bad->field_violations()) fields.push_back(violation.field());
  return fields;
}

v1::KubernetesNodeRequirement Requirement(const std::string& by,
                                          const std::vector<std::string>& values) {
  v1::KubernetesNodeRequirement requirement;
  requirement.set_key("gpu");
  requirement.set_operator_(by);
  for (const std::string& value : values) requirement.add_values(value);
  return requirement;
}

TEST(KubernetesOptions, AFullSectionIsGood) {
  const v1::JobSpec spec = WithOptions([](v1::KubernetesOptions* o) {
    o->set_namespace_("team-a");
    o->set_queue("team-a.q");
    o->set_scheduler_name("kai-scheduler");
    o->set_priority_class("system-node.critical");
    (*o->mutable_node_selector())["nvidia.com/gpu.present"] = "true";
    // Kubernetes' own labels may be asked for, just not set.
    (*o->mutable_node_selector())["kubernetes.io/arch"] = "amd64";
    v1::KubernetesToleration* toleration = o->add_tolerations();
    toleration->set_key("nvidia.com/gpu");
    toleration->set_effect("NoSchedule");
    o->add_tolerations();
    *o->add_required_nodes() = Requirement("In", {"a", "b"});
    *o->add_required_nodes() = Requirement("Gt", {"5"});
    *o->add_preferred_nodes()->mutable_requirement() = Requirement("Exists", {});
    (*o->mutable_labels())["example.com/team"] = "vision";
    (*o->mutable_annotations())["note"] = "any text: 漢";
    o->mutable_termination_grace()->set_seconds(3600);
    o->mutable_time_to_live()->set_seconds(0);
    v1::KubernetesVolume* volume = o->add_volumes();
    volume->set_mount_path("/data");
    volume->set_sub_path("a/b");
    volume->set_claim("data.v1");
    o->mutable_security_context()->set_run_as_user(1000);
    o->mutable_security_context()->add_drop_capabilities("ALL");
  });
  EXPECT_TRUE(NormalizeJobSpec(spec).ok()) << NormalizeJobSpec(spec).status();
}

struct BadCase {
  std::string field;
  std::function<void(v1::KubernetesOptions*)> change;
};

void ExpectRefused(const std::vector<BadCase>& cases) {
  for (const BadCase& c : cases) {
    EXPECT_THAT(Refused(WithOptions(c.change)), testing::ElementsAre("kubernetes." + c.field));
  }
}

TEST(KubernetesOptions, NamesThatKubernetesWouldRefuseAreNamed) {
  ExpectRefused({
      {"namespace", [](auto* o) { o->set_namespace_("Team"); }},
      {"namespace", [](auto* o) { o->set_namespace_("a.b"); }},
      {"namespace", [](auto* o) { o->set_namespace_(std::string(64, 'a')); }},
      {"queue", [](auto* o) { o->set_queue("a/b"); }},
      {"scheduler_name", [](auto* o) { o->set_scheduler_name("a b"); }},
      {"priority_class", [](auto* o) { o->set_priority_class("-a"); }},
      {"runtime_class", [](auto* o) { o->set_runtime_class("a..b"); }},
      {"service_account", [](auto* o) { o->set_service_account(std::string(254, 'a')); }},
      {"image_pull_secrets[0]", [](auto* o) { o->add_image_pull_secrets(""); }},
      {"image_pull_secrets[1]",
       [](auto* o) {
         o->add_image_pull_secrets("good");
         o->add_image_pull_secrets("Bad");
       }},
  });
}

TEST(KubernetesOptions, TheLabelOfKueuesQueueIsToldWithTheFieldForIt) {
  const auto spec = NormalizeJobSpec(
      WithOptions([](auto* o) { (*o->mutable_labels())["kueue.x-k8s.io/queue-name"] = "team-a"; }));
  EXPECT_THAT(std::string(spec.status().message()),
              testing::HasSubstr("the queue is chosen by kubernetes.queue"));
}

TEST(KubernetesOptions, LabelsOfMusterAndKubernetesCannotBeSet) {
  for (const char* key : {"muster.dev/x", "a.muster.dev/x", "kubernetes.io/x",
                          "app.kubernetes.io/x", "k8s.io/x", "kueue.x-k8s.io/x"})
    EXPECT_TRUE(IsReservedLabelKey(key)) << key;
  for (const char* key : {"team", "k8s.io", "example.com/k8s.io", "mykubernetes.io/x"})
    EXPECT_FALSE(IsReservedLabelKey(key)) << key;
  const std::string field = R"(labels["app.kubernetes.io/name"])";
  ExpectRefused({
      {field, [](auto* o) { (*o->mutable_labels())["app.kubernetes.io/name"] = "x"; }},
      {"annotations[\"muster.dev/user\"]",
       [](auto* o) { (*o->mutable_annotations())["muster.dev/user"] = "x"; }},
      {R"(labels["a/b/c"])", [](auto* o) { (*o->mutable_labels())["a/b/c"] = "x"; }},
      {R"(labels["a"])", [](auto* o) { (*o->mutable_labels())["a"] = "no spaces"; }},
      {"annotations", [](auto* o) { (*o->mutable_annotations())["a"] = std::string(204801, 'x'); }},
      {R"(node_selector["a"])", [](auto* o) { (*o->mutable_node_selector())["a"] = "b,c"; }},
  });
}

TEST(KubernetesOptions, OperatorsHaveTheValuesThatTheyNeed) {
  const auto required = [](const std::string& by, const std::vector<std::string>& values) {
    return [=](v1::KubernetesOptions* o) { *o->add_required_nodes() = Requirement(by, values); };
  };
  ExpectRefused({
      {"required_nodes[0].operator", required("in", {"a"})},
      {"required_nodes[0].operator", required("", {"a"})},
      {"required_nodes[0].values", required("In", {})},
      {"required_nodes[0].values[1]", required("NotIn", {"a", "b c"})},
      {"required_nodes[0].values", required("Exists", {"a"})},
      {"required_nodes[0].values", required("Gt", {"a"})},
      {"required_nodes[0].values", required("Lt", {"1", "2"})},
      {"required_nodes[0].values", required("In", std::vector<std::string>(51, "a"))},
      {"preferred_nodes[0].weight",
       [](auto* o) {
         o->add_preferred_nodes()->set_weight(101);
         *o->mutable_preferred_nodes(0)->mutable_requirement() = Requirement("Exists", {});
       }},
      {"tolerations[0].operator", [](auto* o) { o->add_tolerations()->set_operator_("In"); }},
      {"tolerations[0].effect", [](auto* o) { o->add_tolerations()->set_effect("Never"); }},
      {"tolerations[0].key", [](auto* o) { o->add_tolerations()->set_value("x"); }},
      {"tolerations[0].value",
       [](auto* o) {
         o->add_tolerations()->set_key("a");
         o->mutable_tolerations(0)->set_operator_("Exists");
         o->mutable_tolerations(0)->set_value("x");
       }},
  });
}

TEST(KubernetesOptions, ListsAndNumbersHaveTheirBounds) {
  ExpectRefused({
      {"tolerations",
       [](auto* o) {
         for (int i = 0; i < 21; ++i) o->add_tolerations();
       }},
      {"termination_grace", [](auto* o) { o->mutable_termination_grace()->set_seconds(3601); }},
      {"termination_grace", [](auto* o) { o->mutable_termination_grace()->set_nanos(1); }},
      {"time_to_live", [](auto* o) { o->mutable_time_to_live()->set_seconds(-1); }},
      {"time_to_live", [](auto* o) { o->mutable_time_to_live()->set_seconds(604801); }},
      {"shm_bytes", [](auto* o) { o->set_shm_bytes((uint64_t{1} << 50) + 1); }},
      {"gang", [](auto* o) { o->set_gang(static_cast<v1::KubernetesGang>(9)); }},
      {"spread", [](auto* o) { o->set_spread(static_cast<v1::KubernetesSpread>(9)); }},
      {"security_context.run_as_user",
       [](auto* o) { o->mutable_security_context()->set_run_as_user(-1); }},
      {"security_context.add_capabilities[0]",
       [](auto* o) { o->mutable_security_context()->add_add_capabilities("sys_ptrace"); }},
  });
}

TEST(KubernetesOptions, AVolumeHasOneSourceAndAPlaceOfItsOwn) {
  const auto volume = [](const std::function<void(v1::KubernetesVolume*)>& change) {
    return [=](v1::KubernetesOptions* o) {
      o->add_volumes()->set_mount_path("/data");
      o->mutable_volumes(0)->set_claim("claim");
      change(o->mutable_volumes(0));
    };
  };
  ExpectRefused({
      {"volumes[0]", volume([](auto* v) { v->clear_claim(); })},
      {"volumes[0].claim", volume([](auto* v) { v->set_claim("A_b"); })},
      {"volumes[0].secret", volume([](auto* v) { v->set_secret(""); })},
      {"volumes[0].secret", volume([](auto* v) { v->set_secret("k7m2-41-1"); })},
      {"volumes[0].secret", volume([](auto* v) { v->set_secret("k7m2-41-1-files-0"); })},
      {"volumes[0].host_path", volume([](auto* v) { v->set_host_path("data"); })},
      {"volumes[0].mount_path", volume([](auto* v) { v->set_mount_path("data"); })},
      {"volumes[0].mount_path", volume([](auto* v) { v->set_mount_path("/a:b"); })},
      {"volumes[0].sub_path", volume([](auto* v) { v->set_sub_path("../x"); })},
      {"volumes[0].empty_directory.size_bytes",
       volume([](auto* v) { v->mutable_empty_directory()->set_size_bytes(uint64_t{1} << 51); })},
      {"volumes[1].mount_path",
       [](auto* o) {
         for (int i = 0; i < 2; ++i) {
           o->add_volumes()->set_mount_path("/data");
           o->mutable_volumes(i)->set_claim("claim");
         }
       }},
  });
}

TEST(KubernetesOptions, ATimeOutOfRangeIsToldWithItsUnitAndWhatWouldDo) {
  const v1::JobSpec spec = WithOptions([](auto* o) {
    o->mutable_termination_grace()->set_seconds(3601);
    o->mutable_termination_grace()->set_nanos(500'000'000);
  });
  EXPECT_THAT(std::string(NormalizeJobSpec(spec).status().message()),
              testing::HasSubstr("kubernetes.termination_grace: 3601.5s is out of range; use whole "
                                 "seconds from 0s to 3600s (1h)"));
}

TEST(KubernetesOptions, AnyTimeOutOfRangeIsToldDigitByDigit) {
  const auto told = [](int64_t seconds, int32_t nanos) {
    const v1::JobSpec spec = WithOptions([&](auto* o) {
      o->mutable_time_to_live()->set_seconds(seconds);
      o->mutable_time_to_live()->set_nanos(nanos);
    });
    return std::string(NormalizeJobSpec(spec).status().message());
  };
  const std::string field = "kubernetes.time_to_live: ";
  EXPECT_THAT(told(1'000'000'000, 0), testing::HasSubstr(field + "1000000000s is out of range"));
  EXPECT_THAT(told(60, 1'000), testing::HasSubstr(field + "60.000001s is out of range"));
  EXPECT_THAT(told(0, -500'000'000), testing::HasSubstr(field + "-0.5s is out of range"));
  EXPECT_THAT(told(-7, 0), testing::HasSubstr(field + "-7s is out of range"));
}

TEST(KubernetesOptions, AJobIsNotForTwoKindsOfClusters) {
  v1::JobSpec spec = WithOptions([](auto*) {});
  spec.mutable_slurm()->set_account("a");
  EXPECT_THAT(Refused(spec), testing::ElementsAre("kubernetes"));
}

}  // namespace
}  // namespace muster::contract
