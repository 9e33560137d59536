#include "broker/core/fingerprint.h"

#include <gtest/gtest.h>

#include <string>

#include "contract/validate.h"

namespace muster::core {
namespace {

v1::JobSpec Sent() {
  v1::JobSpec spec;
  spec.mutable_command()->mutable_argv()->add_args("train");
  (*spec.mutable_env())["A"] = "1";
  (*spec.mutable_env())["B"] = "2";
  return spec;
}

// Spells a message as a client in any language may write it.
v1::JobSpec WithEnvironmentInTheOrder(const std::string& first, const std::string& second) {
  v1::JobSpec spec = Sent();
  spec.clear_env();
  std::string bytes = spec.SerializeAsString();
  for (const std::string& name : {first, second}) {
    v1::JobSpec one;
    (*one.mutable_env())[name] = name == "A" ? "1" : "2";
    bytes += one.SerializeAsString();
  }
  EXPECT_TRUE(spec.ParseFromString(bytes));
  return spec;
}

TEST(RequestFingerprint, IsTheSameInWhateverOrderAMapCame) {
  EXPECT_EQ(RequestFingerprintOf(WithEnvironmentInTheOrder("A", "B")),
            RequestFingerprintOf(WithEnvironmentInTheOrder("B", "A")));
}

// A database keeps it: another release must come to the same number.
TEST(RequestFingerprint, IsTheSameInEveryRelease) {
  EXPECT_EQ(RequestFingerprintOf(Sent()), 17963469812962223938u);
}

TEST(RequestFingerprint, IsOfWhatWasSentWhateverDefaultsAreFilledIn) {
  v1::JobSpec spec = Sent();
  spec.mutable_slurm()->set_partition("long");
  spec.mutable_retry()->set_on_preemption(true);
  const auto filled = contract::NormalizeJobSpec(spec);
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_NE(FingerprintOf(*filled), FingerprintOf(spec));
  EXPECT_EQ(RequestFingerprintOf(*filled), RequestFingerprintOf(spec));
}

TEST(RequestFingerprint, IsAnotherForWhatDiffers) {
  const auto differs = [](auto change) {
    v1::JobSpec spec = Sent();
    change(spec);
    return RequestFingerprintOf(spec) != RequestFingerprintOf(Sent());
  };
  EXPECT_TRUE(differs([](v1::JobSpec& spec) { spec.set_name("other"); }));
  EXPECT_TRUE(differs([](v1::JobSpec& spec) { spec.set_nodes(2); }));
  EXPECT_TRUE(differs([](v1::JobSpec& spec) { spec.mutable_retry(); }));
  EXPECT_TRUE(differs([](v1::JobSpec& spec) { spec.mutable_slurm(); }));
  EXPECT_TRUE(differs([](v1::JobSpec& spec) { (*spec.mutable_env())["A"] = "2"; }));
  EXPECT_FALSE(differs([](v1::JobSpec& spec) { spec.set_name("train"); })) << "its default";
}

}  // namespace
}  // namespace muster::core
